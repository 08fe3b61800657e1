"""Writes the model that the tests use: `model.py FILE.gguf`.

The model is a Llama with a single layer that adds nothing, between an embedding that marks the last token and an output layer with the
log probabilities of the next one. This makes it a table of word pairs of 1.5 MB, the same in every run. It is not trained on any data.

At temperature 1 its choices differ, finish at different lengths, split characters between tokens, and emit reasoning if the template
allows it. With tools, some choices call one, some several, and some none.
"""

import re
import sys

import gguf
import numpy

# Words occur in several sentences, so that a walk over word pairs switches between sentences.
SENTENCES = [
    "The harbour of Skagen is the harbour of the north.",
    "A boat leaves the harbour in the morning, and a boat comes back in the evening.",
    "The wind is strong in the morning, and the water is high.",
    "A strong wind from the north brings high water to Køge and to Ærø.",
    "No boat leaves if the wind is high.",
    "🌊 is water, ⛵ is a boat, 🐟 is a fish.",
    "波 is a wave, 風 is the wind, and 魚 is a fish from the north.",
    "Smørrebrød is bread with a fish, or with an egg.",
    "She said \"no wind today\" and went back to the harbour.",
    "Line one is here,\nline two is there.\n\nThe end.",
    "Yes.",
    "No.",
    "ø is an island.",
]

# A bar separates the tokens. No token may occur in another call or sentence, or a call would switch to it.
CALLS = {
    # The text before the values, the values, the text after them, and the weight of the call.
    "get_wind": ('\n{"name|": "get_wind|", "argum|ents": {"harb|our": "', ["Ska|gen", "K\udcc3|\udcb8ge", "東|港", "Ny|borg"], '", "un|it": "kn|ots"|}}\n', 3),
    "get_tide": ('\n{"na|me": "get_tide|", "arg|uments": {"da|y": "', ["to|day", "to|morrow"], '"}|}\n', 2),
    "ring_bell": ('\n{"nam|e": "ring_bell|", "arguments|": {', [""], '}|} \n', 1),
}
THOUGHTS = [" First", " I look", " at the sky", ", then", " at the chart", " — slowly —", " and 🤔"]

SPECIAL = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|act|>"]
MARKS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
END, ANSWER, ACT = "<|end|>", "<|assistant|>", "<|act|>"

TEMPLATE = """\
{%- if tools %}<|system|>Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one with <tool_call>{"name": .., "arguments": ..}</tool_call><|end|>{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' %}<|assistant|>{% elif message.role == 'system' %}<|system|>{% else %}<|user|>{% endif -%}
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif -%}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor -%}
<|end|>{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>{% if enable_thinking %}<think>{% elif tools %}<|act|>{% endif %}{% endif -%}
"""

# Every pair has a nonzero probability, because a grammar may forbid all others.
RARE = 1e-9


def byte_level(piece: bytes) -> str:
    """Encodes bytes in the alphabet of GPT-2, where each byte is one printable character."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(byte if byte in printable else 256 + others.index(byte)) for byte in piece)


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def pieces_of(sentence: str) -> list[bytes]:
    """Splits a sentence into words and punctuation. Other characters are split before their last byte."""
    pieces = []
    for word in re.findall(r" ?[A-Za-z]+|.", sentence, re.DOTALL):
        whole = raw(word)
        pieces += [whole] if len(whole) == len(word) else [whole[:-1], whole[-1:]]
    return pieces


class Table:
    """The tokens, and how often each one follows another."""

    def __init__(self) -> None:
        self.special = {name: at for at, name in enumerate(SPECIAL + MARKS)}
        self.bytes: dict[bytes, int] = {}
        self.weights: dict[tuple[int, int], float] = {}
        for byte in range(256):
            self.token(bytes([byte]))

    def token(self, piece: bytes | str) -> int:
        if isinstance(piece, str):
            return self.special[piece]
        return self.bytes.setdefault(piece, len(self.special) + len(self.bytes))

    def chain(self, *pieces: bytes | str, weight: float = 1.0) -> None:
        for before, after in zip(pieces, pieces[1:]):
            pair = self.token(before), self.token(after)
            self.weights[pair] = self.weights.get(pair, 0.0) + weight

    def logarithms(self, size: int) -> numpy.ndarray:
        table = numpy.full((size, size), RARE)
        for (before, after), weight in self.weights.items():
            table[before, after] += weight
        # Control tokens other than the end, and unused tokens, are never generated.
        table[:, 1 : len(SPECIAL)] = table[:, len(self.special) + len(self.bytes) :] = 1e-15
        return numpy.log(table / table.sum(axis=1, keepdims=True)).astype(numpy.float32)


def filled() -> Table:
    table = Table()
    for sentence in SENTENCES:
        pieces = pieces_of(sentence)
        table.chain(ANSWER, *pieces, END)
        table.chain("</think>", *pieces)
        table.chain(ACT, pieces[0], weight=0.4)
        table.chain(b".", b" ", weight=0.5)
        table.chain(b" ", pieces[0], weight=0.5)
    table.chain(b".", "<tool_call>", weight=2)
    called(table)
    thoughts = [raw(text) for text in THOUGHTS]
    table.chain("<think>", *thoughts, thoughts[0])
    table.chain(thoughts[2], "</think>")
    table.chain(thoughts[-1], "</think>")
    return table


def called(table: Table) -> None:
    known = {piece for sentence in SENTENCES for piece in pieces_of(sentence)}
    for head, values, tail, weight in CALLS.values():
        cuts = [[raw(piece) for part in (head, value, tail) for piece in part.split("|") if piece] for value in values]
        for cut in cuts:
            assert not known.intersection(cut), f"{cut} would leave half-way"
            table.chain("<tool_call>", *cut, "</tool_call>", weight=weight / len(values))
        known.update(*cuts)
    table.chain(ACT, "<tool_call>", weight=8)
    table.chain("</tool_call>", "<tool_call>")
    table.chain("</tool_call>", END)


def write(path: str) -> None:
    table = filled()
    used = len(table.special) + len(table.bytes)
    size = -(-used // 64) * 64
    head = 32
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("unbraid-tests")
    out.add_context_length(4096)
    out.add_embedding_length(size)
    out.add_block_count(1)
    out.add_feed_forward_length(head)
    out.add_head_count(1)
    out.add_head_count_kv(1)
    out.add_key_length(head)
    out.add_value_length(head)
    out.add_rope_dimension_count(head)
    out.add_layer_norm_rms_eps(1e-12)
    out.add_vocab_size(size)
    out.add_file_type(0)
    vocabulary(out, table, size)
    tensors(out, table, size, head)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def vocabulary(out: gguf.GGUFWriter, table: Table, size: int) -> None:
    names = SPECIAL + MARKS + [byte_level(piece) for piece in table.bytes]
    unused = size - len(names)
    kind = gguf.TokenType
    kinds = [kind.CONTROL] * len(SPECIAL) + [kind.USER_DEFINED] * len(MARKS) + [kind.NORMAL] * len(table.bytes) + [kind.UNUSED] * unused
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(names + [f"<unused{at}>" for at in range(unused)])
    out.add_token_types(kinds)
    # The format requires a merge. A prompt is tokenized byte by byte, and the model uses only its last token.
    out.add_token_merges(["T h"])
    out.add_bos_token_id(table.token(END))
    out.add_eos_token_id(table.token(END))
    out.add_add_bos_token(False)
    out.add_chat_template(TEMPLATE)


def tensors(out: gguf.GGUFWriter, table: Table, size: int, head: int) -> None:
    def zeros(*shape: int) -> numpy.ndarray:
        return numpy.zeros(shape, numpy.float32)

    ones = numpy.ones(size, numpy.float32)
    # The norm scales a single 1 to the square root of the size.
    output = table.logarithms(size).T / numpy.sqrt(size, dtype=numpy.float32)
    layer = {
        "attn_norm": ones,
        "attn_q": zeros(head, size),
        "attn_k": zeros(head, size),
        "attn_v": zeros(head, size),
        "attn_output": zeros(size, head),
        "ffn_norm": ones,
        "ffn_gate": zeros(head, size),
        "ffn_up": zeros(head, size),
        "ffn_down": zeros(size, head),
    }
    out.add_tensor("token_embd.weight", numpy.eye(size, dtype=numpy.float32))
    out.add_tensor("output_norm.weight", ones)
    out.add_tensor("output.weight", numpy.ascontiguousarray(output))
    for name, weights in layer.items():
        out.add_tensor(f"blk.0.{name}.weight", weights)


if __name__ == "__main__":
    write(sys.argv[1])
