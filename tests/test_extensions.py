"""What extensions register can be loaded, and an absent extension is named."""

import pytest

from pipeplan.foundation import extensions
from pipeplan.foundation.extensions import MissingExtensionError, extension, loaded, required_service, service


@pytest.mark.parametrize("name", extensions.NAMES)
def test_every_address_leads_to_something(name):
    registered = extension(name)
    assert registered is not None
    assert registered.name == name
    assert set(registered.needs) < set(extensions.NAMES)
    if name == "training":
        pytest.importorskip("torch", reason="its runtime needs PyTorch")
    for address in (*registered.formats, *registered.services.values()):
        assert loaded(address) is not None


def test_an_absent_extension_is_named(monkeypatch):
    monkeypatch.setattr(extensions, "extension", lambda name: None)
    assert service("search", "reorderer") is None
    with pytest.raises(MissingExtensionError, match="needs the extension 'search' of pipeplan, which is not installed"):
        required_service("search", "reorderer")
