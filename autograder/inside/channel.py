"""Messages between the examiner and a candidate: plain data both ways, nothing is evaluated.

A message is two lengths, a JSON text, and the bytes of its arrays. Whatever arrives is checked
against a short list of forms before an object is made of it: no pickle, no names of classes, and
no array header that would have to be parsed.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

HEAD = struct.Struct("<II")
TEXT_LIMIT = 16 << 20
ARRAY_LIMIT = 16 << 20
DEPTH_LIMIT = 40
PART_LIMIT = 300_000  # values in a message: a short text can stand for very many

NUMBERS = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
}


class ChannelError(Exception):
    """The other side is gone or sent something that is no message."""


class TooLarge(ValueError):
    """A value does not fit in a message."""


class Channel:
    """A socket that carries messages.

    Parameters
    ----------
    sock : socket.socket
        A connected stream socket.
    wait : callable, optional
        Called as ``wait(sock, writing)`` before each read or write; returns when the socket is
        ready, or raises. Without it the socket blocks.
    """

    def __init__(
        self, sock: socket.socket, wait: Callable[[socket.socket, bool], None] | None = None
    ) -> None:
        self.sock = sock
        self._wait = wait
        sock.setblocking(wait is None)

    def send(self, content: Any, functions: list[Callable[..., Any]] | None = None) -> None:
        """Send plain data.

        Parameters
        ----------
        content : plain data
            None, numbers, strings, arrays, and tuples, lists and dictionaries of these.
        functions : list, optional
            Callables in the content are appended to it, and the other side gets stand-ins.

        Raises
        ------
        TypeError
            If the message is not plain data.
        TooLarge
            If it exceeds the limits.
        ChannelError
            If the other side is gone.
        """
        message = _Message(functions)
        text = json.dumps(message.encode(content)).encode()
        arrays = b"".join(message.blobs)
        if len(text) > TEXT_LIMIT or len(arrays) > ARRAY_LIMIT:
            raise TooLarge(f"a message of {len(text) + len(arrays)} bytes")
        self._write(HEAD.pack(len(text), len(arrays)) + text + arrays)

    def receive(self, stand_in: Callable[[int], Any] | None = None) -> Any:
        """Return the next message.

        Parameters
        ----------
        stand_in : callable, optional
            Makes the object that stands for the other side's function number i.

        Raises
        ------
        ChannelError
            If the other side is gone, or what came is no message.
        """
        text_length, array_length = HEAD.unpack(self._read(HEAD.size))
        if text_length > TEXT_LIMIT or array_length > ARRAY_LIMIT:
            raise ChannelError("the message is too long")
        text, arrays = self._read(text_length), _Cut(self._read(array_length))
        try:
            return _decode(json.loads(text), arrays, stand_in)
        except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
            raise ChannelError(f"no message: {type(error).__name__}") from None

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                if self._wait:
                    self._wait(self.sock, True)
                view = view[self.sock.send(view) :]
        except BlockingIOError:  # cannot happen after waiting, except on a hostile socket
            raise ChannelError("the other side does not read") from None
        except OSError as error:
            raise ChannelError(f"the other side is gone: {error}") from None

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            if self._wait:
                self._wait(self.sock, False)
            try:
                part = self.sock.recv(min(count - len(data), 1 << 20))
            except OSError as error:
                raise ChannelError(f"the other side is gone: {error}") from None
            if not part:
                raise ChannelError("the other side is gone")
            data += part
        return bytes(data)


class _Cut:
    """Bytes that are taken from the front, piece by piece."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.parts = data, 0, 0

    def count(self) -> None:
        """Count one more value that is made of the message."""
        self.parts += 1
        if self.parts > PART_LIMIT:
            raise ValueError("too many values")

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise ValueError("an array is cut off")
        self.at += count
        return piece


class _Message:
    """What is to be sent, within the bounds that the other side holds it to."""

    def __init__(self, functions: list[Callable[..., Any]] | None) -> None:
        self.functions, self.blobs, self.parts = functions, [], 0

    def count(self, parts: int) -> None:
        self.parts += parts
        if self.parts > PART_LIMIT:
            raise TooLarge(f"a message of more than {PART_LIMIT} values")

    def encode(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        self.count(1)
        if depth > DEPTH_LIMIT:
            raise TooLarge(f"a message of more than {DEPTH_LIMIT} levels")
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return [self.encode(part, depth + 1) for part in value]
        if kind is tuple:
            return {"tuple": [self.encode(part, depth + 1) for part in value]}
        if kind is dict:
            self.count(len(value))
            pairs = [[k, self.encode(v, depth + 1)] for k, v in value.items() if type(k) is str]
            if len(pairs) != len(value):
                raise TypeError("a key that is not a string is not plain data")
            return {"dict": pairs}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if kind is np.ndarray:
            return self.encode_array(value)
        if isinstance(value, np.generic):
            return {"scalar": self.encode_array(np.asarray(value))}
        if self.functions is not None and callable(value):
            self.functions.append(value)
            return {"function": len(self.functions) - 1}
        raise TypeError(f"{kind.__name__} is not plain data")

    def encode_array(self, array: np.ndarray) -> dict[str, Any]:
        shape = list(array.shape)
        if array.dtype.kind == "U":
            self.count(array.size)
            return {"strings": [str(item) for item in array.ravel().tolist()], "shape": shape}
        name = {"g": "float64", "G": "complex128"}.get(array.dtype.char, array.dtype.name)
        if name not in NUMBERS:
            raise TypeError(f"an array of {array.dtype} is not plain data")
        if array.nbytes > ARRAY_LIMIT:
            raise TooLarge(f"an array of {array.nbytes} bytes")
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        self.blobs.append(array.astype(name, copy=False).tobytes("F" if by_columns else "C"))
        return {"array": name, "shape": shape, "order": "F" if by_columns else "C"}


def _decode(data: Any, arrays: _Cut, stand_in: Callable[[int], Any] | None, depth: int = 0) -> Any:
    if depth > DEPTH_LIMIT:
        raise ValueError("too deep")
    arrays.count()
    kind = type(data)
    if data is None or kind in (bool, int, float):
        return data
    if kind is str:
        # A lone surrogate is a string in Python and an error in every file it is written to.
        return data if data.isascii() else data.encode("utf-8", "replace").decode()
    if kind is list:
        return [_decode(part, arrays, stand_in, depth + 1) for part in data]
    if "dict" in data:
        return {
            _decode(_of(str, key), arrays, None): _decode(value, arrays, stand_in, depth + 1)
            for key, value in _of(list, data["dict"])
        }
    if "tuple" in data:
        parts = _of(list, data["tuple"])
        return tuple(_decode(part, arrays, stand_in, depth + 1) for part in parts)
    if "complex" in data:
        real, imaginary = data["complex"]
        return complex(_of(float, real), _of(float, imaginary))
    if "array" in data or "strings" in data:
        return _decode_array(data, arrays)
    if "scalar" in data:
        return _decode_array(_of(dict, data["scalar"]), arrays)[()]
    if "function" in data and stand_in is not None:
        return stand_in(_of(int, data["function"]))
    raise ValueError("an unknown form")


def _decode_array(data: dict[str, Any], arrays: _Cut) -> np.ndarray:
    shape = tuple(_of(int, length) for length in _of(list, data["shape"]))
    if len(shape) > 32 or any(length < 0 for length in shape):
        raise ValueError("no shape")
    if "strings" in data:
        strings = [_decode(_of(str, item), arrays, None) for item in _of(list, data["strings"])]
        # NumPy gives each the room of the longest.
        if 4 * len(strings) * max(map(len, strings), default=0) > ARRAY_LIMIT:
            raise ValueError("too large")
        return np.array(strings, dtype=str).reshape(shape)
    if _of(str, data["array"]) not in NUMBERS:
        raise ValueError("no type of number")
    dtype = np.dtype(data["array"])
    count = math.prod(shape)
    if count > ARRAY_LIMIT:
        raise ValueError("too large")
    flat = np.frombuffer(arrays.take(count * dtype.itemsize), dtype)
    if dtype.kind == "b":
        flat = flat.view(np.uint8) != 0  # a byte other than 0 and 1 is no truth value
    return flat.reshape(shape, order="F" if data.get("order") == "F" else "C").copy("K")


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"not a {kind.__name__}")
    return value
