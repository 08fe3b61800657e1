//! An answer of Converse that is not streamed.

use super::{Bedrock, CHOICE, block::is_server_tool};
use crate::{
    chunk::CONTENT_PARTS,
    dialect::{
        blocks::Block,
        reader::{Lane, Output, arguments_of, entries, fragment, raw, reason_of, text},
    },
    node::Node,
};

impl Bedrock {
    pub(super) fn body<'a>(&mut self, body: &Node<'a>, output: &mut Output<'a>) {
        self.has_started = true;
        let message = body.get("output").and_then(|output| output.get("message"));
        output.choice(CHOICE).role = message.and_then(|message| text(message, "role"));
        let content = message.and_then(|message| message.get("content"));
        output.text(CHOICE, Lane::Content, content.and_then(Node::fragment));
        for part in entries(content) {
            output.text(CHOICE, Lane::Content, part.fragment());
            let members = part.as_object().unwrap_or_default();
            let members = || members.iter().filter(|(_, value)| !value.is_null());
            let is_known = members().any(|(key, _)| is_read(key));
            // A union has one member. Beside a known one, others are keys that a gateway has added.
            for (key, value) in members().filter(|(key, _)| !is_known || is_read(key)) {
                self.part(key, value, part, output);
            }
        }
        for (key, value) in body.as_object().unwrap_or_default() {
            match &**key {
                "output" | "stopReason" | "usage" => {}
                "metrics" | "trace" => {
                    let field = (key.clone(), raw(value));
                    output.stream().metadata.push(field);
                }
                _ => output.choice_field(CHOICE, key, value),
            }
        }
        if let Some(reason) = reason_of(body.get("stopReason")) {
            self.calls.finish(CHOICE, &reason, output);
            output.finish_reason(CHOICE, reason);
        }
        output.usage(body.get("usage"));
        output.done();
    }

    fn part<'a>(&mut self, key: &str, value: &Node<'a>, part: &Node<'a>, output: &mut Output<'a>) {
        match key {
            "text" => output.text(CHOICE, Lane::Content, value.fragment()),
            "toolUse" if !is_server_tool(value) => {
                if let Block::Call(mut call) = self.call_start(value, output) {
                    call.append(CHOICE, arguments_of(value.get("input")), output);
                    self.calls.close(CHOICE, &mut call, output);
                }
            }
            "reasoningContent" => {
                let reasoning = value.get("reasoningText");
                if let Some(reasoning) = reasoning {
                    output.text(CHOICE, Lane::Reasoning, fragment(reasoning, "text"));
                }
                // Reasoning without a signature is only text.
                if reasoning.is_none_or(|reasoning| text(reasoning, "signature").is_some()) {
                    output.entry(CHOICE, "reasoning_details", &raw(part));
                }
            }
            "citationsContent" => {
                for content in entries(value.get("content")) {
                    output.text(CHOICE, Lane::Content, fragment(content, "text"));
                }
                for citation in entries(value.get("citations")) {
                    output.entry(CHOICE, "annotations", &raw(citation));
                }
            }
            "image" => output.entry(CHOICE, "images", &raw(part)),
            _ => output.entry(CHOICE, CONTENT_PARTS, &raw(part)),
        }
    }
}

/// Whether a member of a content block is read, and not only kept.
fn is_read(key: &str) -> bool {
    matches!(
        key,
        "text" | "toolUse" | "reasoningContent" | "citationsContent" | "image"
    )
}
