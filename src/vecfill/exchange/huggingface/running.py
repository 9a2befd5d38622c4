"""A model at work, run by torch: readings of texts, hidden states and losses, before and after.

`RunningModel` holds the model once. Rows of new tokens are put into its tables and taken out again,
so that both readings of a text, by pieces and by new tokens, come from the same weights.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError, InputError, MissingExtraError, library
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.tensors import read_json
from vecfill.wording import count

EXTRA = "lm"
MOST_TOKENS = 4096
"""Tokens that are read at once; more of them take memory and no less time."""
CAUSAL, ENCODER = "causal", "encoder"
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_DECODERS = ("ForConditionalGeneration", "ForSeq2SeqLM")

Ids = list[int]


def kind_of(model: ModelFolder) -> str | None:
    """Return whether a model is causal or an encoder; ``None`` if it is neither."""
    names = [str(name) for name in model.config.get("architectures") or ()]
    if not names or not model.config.get("model_type") or model.config.get("is_encoder_decoder"):
        return None
    if any(name.endswith(_DECODERS) for name in names):
        return None
    return CAUSAL if any(name.endswith(_CAUSAL) for name in names) else ENCODER


def why_not(model: ModelFolder) -> str | None:
    """Return why a model cannot be run here; ``None`` if it can."""
    if kind_of(model) is None:
        return "it is neither an encoder nor a causal model of transformers"
    try:
        for name in ("torch", "transformers", "tokenizers"):
            library(name, extra=EXTRA)
    except MissingExtraError as error:
        return str(error).rstrip(".")
    # In 32 bits, with as much again for what is computed on the way.
    n_bytes = 2 * sum(4 * np.prod(tensor.shape) for tensor in model.weights.tensors.values())
    if n_bytes > _memory():
        return f"running it takes {n_bytes / 1e9:.1f} GB of memory"
    return None


def _memory() -> float:
    """Return the memory of this computer in bytes; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


class RunningModel:
    """A model that reads texts, with and without new tokens."""

    def __init__(self, model: ModelFolder, entries: Sequence[dict[str, Any]]) -> None:
        reason = why_not(model)
        if reason is not None:
            raise InputError(f"{model.path} cannot be run: {reason}.")
        self.torch = library("torch", extra=EXTRA)
        transformers = library("transformers", extra=EXTRA)
        tokenizers = library("tokenizers", extra=EXTRA)
        self.kind = kind_of(model)
        self.terms = [str(entry["content"]) for entry in entries]
        self.ids = [int(entry["id"]) for entry in entries]
        self._before, self._after = (
            _tokenizer(tokenizers, spec)
            for spec in (model.tokenizer.spec, model.tokenizer.extended(list(entries)))
        )
        auto = transformers.AutoModelForCausalLM if self.is_causal else transformers.AutoModel
        options = {"dtype": self.torch.float32, "local_files_only": True}
        try:
            with _silence(transformers.utils.logging):
                network, info = auto.from_pretrained(
                    model.home, **options, output_loading_info=True
                )
        except (OSError, ValueError, KeyError) as error:
            raise FormatError(
                f"{model.home}: transformers cannot load it: {error}. Save the model again."
            ) from error
        lacking = [name for name in info["missing_keys"] if "pooler" not in name]
        if lacking:
            raise FormatError(
                f"{model.home}: transformers lacks {count(len(lacking), 'tensor')} to run it, such "
                f"as {lacking[0]!r}. Save the model again."
            )
        self.network = network.eval().requires_grad_(False)
        self._pooling = _pooling_of(model)
        self.n_rows = model.tokenizer.next_id
        if max(self.ids, default=0) >= len(self.table):
            n_rows = max(self.ids) + 1
            self.network.resize_token_embeddings(n_rows, mean_resizing=False)

    @property
    def is_causal(self) -> bool:
        """Whether the model predicts the next token."""
        return self.kind == CAUSAL

    @property
    def table(self) -> Any:
        """The input table, (n_tokens, n_dims)."""
        return self.network.get_input_embeddings().weight

    @property
    def head(self) -> Any:
        """The output table of a causal model; the input table, if it is tied."""
        return self.network.get_output_embeddings().weight

    @property
    def is_tied(self) -> bool:
        """Whether input and output have one table."""
        return self.head is self.table

    def put(self, rows: FloatArray, head: FloatArray | None = None) -> None:
        """Put rows of the new tokens into the tables."""
        torch = self.torch
        with torch.no_grad():
            self.table[self.ids] = torch.tensor(np.asarray(rows, np.float32))
            if head is not None and not self.is_tied:
                self.head[self.ids] = torch.tensor(np.asarray(head, np.float32))

    def split(self, text: str) -> Ids:
        """Return the ids of a text as the model read it before."""
        return self._before.encode(text).ids

    def joined(self, text: str) -> Ids:
        """Return the ids of a text with new tokens."""
        return self._after.encode(text).ids

    @contextmanager
    def in_one_thread(self) -> Iterator[None]:
        """Compute in one thread, so that sums have the same order on every machine."""
        n_threads = self.torch.get_num_threads()
        self.torch.set_num_threads(1)
        try:
            yield
        finally:
            self.torch.set_num_threads(n_threads)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Compute in one thread and without gradients."""
        with self.in_one_thread(), self.torch.no_grad():
            yield

    @contextmanager
    def reading(self, values: Any) -> Iterator[None]:
        """Read new tokens as some values, which may have a gradient, for as long as it runs."""
        torch = self.torch
        place_of = torch.full((len(self.table),), -1)
        place_of[self.ids] = torch.arange(len(self.ids))

        def exchanged(module: Any, inputs: Any, output: Any) -> Any:
            places = place_of[inputs[0]]
            is_new = (places >= 0)[..., None]
            # Some models scale what they read from the table.
            rows = values[places.clamp(min=0)] * getattr(module, "scalar_embed_scale", 1.0)
            return torch.where(is_new, rows, output)

        hook = self.network.get_input_embeddings().register_forward_hook(exchanged)
        try:
            yield
        finally:
            hook.remove()

    def batches(self, texts: Sequence[Ids]) -> Iterator[tuple[list[int], Any, Any]]:
        """Yield texts of like length together: their places, ids and mask."""
        torch = self.torch
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        first = 0
        while first < len(order):
            last = first + 1
            while last < len(order) and len(texts[order[last]]) * (last + 1 - first) <= MOST_TOKENS:
                last += 1
            places = order[first:last]
            width = max(1, len(texts[places[-1]]))
            ids = torch.zeros((len(places), width), dtype=torch.long)
            mask = torch.zeros((len(places), width), dtype=torch.long)
            for row, place in enumerate(places):
                ids[row, : len(texts[place])] = torch.tensor(texts[place])
                mask[row, : len(texts[place])] = 1
            yield places, ids, mask
            first = last

    def states(self, ids: Any, mask: Any) -> Any:
        """Return the last hidden states of a batch, which the head turns into scores."""
        core = self.network.base_model if self.is_causal else self.network
        return core(input_ids=ids, attention_mask=mask).last_hidden_state

    def has_plain_scores(self) -> bool:
        """Tell whether scores are products of hidden states and rows; some models change them."""
        ids = self.torch.arange(min(8, self.n_rows))[None]
        with self.quiet():
            states = self.states(ids, self.torch.ones_like(ids))
            return bool(
                self.torch.allclose(
                    self.network.get_output_embeddings()(states),
                    self.network(ids).logits,
                    rtol=1e-3,
                    atol=1e-3,
                )
            )

    def pooled(self, states: Any, mask: Any) -> Any:
        """Return sentence vectors of length 1."""
        if self._pooling == "cls":
            sums = states[:, 0]
        elif self._pooling == "lasttoken":
            sums = states[self.torch.arange(len(states)), mask.sum(dim=1) - 1]
        else:
            sums = (states * mask[..., None]).sum(dim=1)
        return self.torch.nn.functional.normalize(sums, dim=1)

    def vectors(self, texts: Sequence[Ids]) -> FloatArray:
        """Return the sentence vectors of texts."""
        vectors = np.empty((len(texts), self.table.shape[1]), np.float32)
        with self.quiet():
            for places, ids, mask in self.batches(texts):
                vectors[places] = self.pooled(self.states(ids, mask), mask).numpy()
        return vectors

    def hidden(self, texts: Sequence[Ids]) -> list[Any]:
        """Return the last hidden states of each text, one for each of its tokens."""
        hidden: list[Any] = [None] * len(texts)
        with self.quiet():
            for places, ids, mask in self.batches(texts):
                states = self.states(ids, mask)
                for row, place in enumerate(places):
                    hidden[place] = states[row, : len(texts[place])].clone()
        return hidden

    def sampled(self, n_texts: int, n_tokens: int, seed: int) -> list[Ids]:
        """Return texts that the model itself writes."""
        torch = self.torch
        generator = torch.Generator().manual_seed(seed)
        begin = self.network.config.bos_token_id
        if begin is None:
            begin = self.network.config.eos_token_id or 0
        begin = begin[0] if isinstance(begin, list) else begin
        texts = torch.full((n_texts, 1), int(begin))
        latest, cache = texts, None
        with self.quiet():
            for _ in range(n_tokens):
                output = self.network(latest, past_key_values=cache, use_cache=True)
                cache = output.past_key_values
                chances = torch.softmax(output.logits[:, -1, : self.n_rows].float(), dim=-1)
                latest = torch.multinomial(chances, 1, generator=generator)
                texts = torch.cat([texts, latest], dim=1)
        return texts.tolist()


@contextmanager
def _silence(log: Any) -> Iterator[None]:
    """Keep transformers from printing what it loads."""
    verbosity, shows_progress = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if shows_progress:
            log.enable_progress_bar()


def _tokenizer(tokenizers: Any, spec: dict[str, Any]) -> Any:
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec))
    tokenizer.no_padding()
    return tokenizer


def _pooling_of(model: ModelFolder) -> str:
    """Return how token vectors become a sentence vector: mean, cls or lasttoken."""
    for module in model.modules:
        path = module / "config.json"
        if "pooling" in module.name.lower() and path.exists():
            config = read_json(path, dict)
            for name in ("cls", "lasttoken"):
                if config.get(f"pooling_mode_{name}_token") or config.get(f"pooling_mode_{name}"):
                    return name
    return "mean"
