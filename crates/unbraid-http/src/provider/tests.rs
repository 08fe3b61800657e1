use super::{Provider, ollama_host};

#[test]
fn the_host_of_ollama_may_lack_its_scheme_and_port() {
    for (value, expected) in [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        (" box:8080 ", "http://box:8080"),
        ("box:", "http://box:11434"),
        ("", "http://localhost:11434"),
        (":8080", "http://localhost:8080"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:1234", "http://[::1]:1234"),
        ("box/ollama", "http://box:11434/ollama"),
        ("http://box", "http://box"),
        ("https://ollama.com", "https://ollama.com"),
        ("https://user:1@box/a", "https://user:1@box/a"),
    ] {
        assert_eq!(ollama_host(value), expected, "{value}");
    }
}

#[test]
fn names_are_read_back() {
    for provider in Provider::ALL {
        assert_eq!(provider.as_str().parse(), Ok(provider));
    }
}
