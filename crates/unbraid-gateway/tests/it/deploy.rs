//! The files of `docs/deploy` agree with the gateway: metrics, labels and options that exist.

use std::{collections::BTreeSet, fs, path::PathBuf};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use crate::support::{Upstream, chunk, finish, send, start, stream_of};

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The only document of a YAML text.
fn yaml(text: &str) -> Yaml<'_> {
    let mut documents = Yaml::load_from_str(text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// The names of the gateway's metrics in an expression.
fn metrics(expression: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(move |c| !is_name(c));
    words.filter(|word| word.starts_with("unbraid_"))
}

/// The samples that Prometheus has of a metric, by its declaration in `/metrics`.
async fn samples() -> BTreeSet<String> {
    let upstream = Upstream::steps(stream_of(&[chunk(0, "a"), finish(0)])).await;
    let gateway = start(&upstream).await;
    // A metric without a sample has no line.
    let (id, mut post) = gateway.create(1).await;
    post.rest().await;
    gateway.ended(&id).await;
    let text = send(gateway.get("/metrics")).await.text().await.unwrap();
    let mut samples = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            "gauge" => &[""],
            kind => panic!("{name} is a {kind}"),
        };
        samples.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    samples
}

/// The expressions of the dashboard and of the alerts.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("deploy/grafana.json")).unwrap();
    let mut expressions = Vec::new();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels {
        assert!(!panel["description"].as_str().unwrap().is_empty());
        for target in panel["targets"].as_array().unwrap() {
            expressions.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        expressions.push(variable["query"].as_str().unwrap().to_owned());
    }
    let alerts = file("deploy/alerts.yml");
    let alerts = yaml(&alerts);
    for group in alerts["groups"].as_vec().unwrap() {
        for rule in group["rules"].as_vec().unwrap() {
            for field in ["alert", "expr"] {
                assert!(rule[field].as_str().is_some_and(|text| !text.is_empty()));
            }
            assert!(rule["labels"]["severity"].as_str().is_some());
            assert!(rule["annotations"]["summary"].as_str().is_some());
            expressions.push(rule["expr"].as_str().unwrap().to_owned());
        }
    }
    expressions
}

#[tokio::test]
async fn every_metric_of_the_dashboard_and_the_alerts_exists_and_every_metric_is_shown() {
    let samples = samples().await;
    let expressions = expressions();
    let used: BTreeSet<&str> = expressions.iter().flat_map(|text| metrics(text)).collect();
    for name in &used {
        assert!(
            samples.contains(*name),
            "{name} is not a metric: {samples:?}"
        );
    }
    let unused: Vec<&String> = samples
        .iter()
        .filter(|name| !name.ends_with("_count") && !name.ends_with("_sum"))
        .filter(|name| !used.contains(name.as_str()))
        .collect();
    assert!(unused.is_empty(), "no panel shows {unused:?}");
}

#[test]
fn brackets_and_braces_of_expressions_are_balanced() {
    for expression in expressions() {
        let mut open = Vec::new();
        for c in expression.chars() {
            match c {
                '(' => open.push(')'),
                '{' => open.push('}'),
                '[' => open.push(']'),
                ')' | '}' | ']' => assert_eq!(open.pop(), Some(c), "{expression}"),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{expression}");
    }
}

/// The ends and the results that the alerts compare labels with.
#[test]
fn labels_that_the_alerts_compare_exist() {
    let names = file("../crates/unbraid-gateway/src/metrics/labels.rs")
        + &file("../crates/unbraid-log/src/end.rs");
    for expression in expressions() {
        for (name, rest) in expression
            .match_indices("=\"")
            .map(|(at, _)| expression.split_at(at))
        {
            let name = name.rsplit(['{', ',']).next().unwrap().trim();
            let value = rest.trim_start_matches("=\"").split('"').next().unwrap();
            assert!(
                names.contains(&format!("\"{value}\"")),
                "{name}={value} is not a value of a label"
            );
        }
    }
}

#[test]
fn the_options_of_the_compose_file_exist_and_its_services_fit_together() {
    let text = file("deploy/compose/compose.yml");
    let compose = yaml(&text);
    let services = &compose["services"];
    let environment = services["gateway-a"]["environment"].as_mapping().unwrap();
    let guide = file("gateway.md") + &file("command-line.md");
    for name in environment.keys() {
        let name = name.as_str().unwrap();
        let flag = name.strip_prefix("UNBRAID_").unwrap();
        let flag = format!("--{}", flag.to_lowercase().replace('_', "-"));
        assert!(guide.contains(&flag), "{flag} is not documented");
    }
    let log = services["gateway-a"]["environment"]["UNBRAID_LOG"]
        .as_str()
        .unwrap();
    assert!(services.as_mapping().is_some());
    assert_eq!(log, "redis://redis:6379");
    assert!(
        services["redis"]["command"]
            .as_str()
            .unwrap()
            .contains("noeviction")
    );
    assert_eq!(services["gateway-b"], services["gateway-a"]);
    // nginx passes requests on to both, and to nothing else.
    let nginx = file("deploy/compose/nginx.conf");
    let servers: Vec<&str> = nginx
        .lines()
        .filter_map(|line| line.trim().strip_prefix("server "))
        .filter_map(|line| line.split(':').next())
        .filter(|name| !name.contains('{'))
        .collect();
    assert_eq!(servers, ["gateway-a", "gateway-b"]);
    let mut directives = nginx.lines().filter(|line| !line.trim().starts_with('#'));
    let repeats = directives.any(|line| line.contains("non_idempotent"));
    assert!(!repeats, "a POST is not repeated");
    for secret in ["keys", "link-secret", "upstream-key"] {
        assert!(
            compose["secrets"][secret]["file"].as_str().is_some(),
            "{secret}"
        );
    }
}
