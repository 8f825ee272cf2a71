"""ColossalAI beside us.

Its interface imports two names of peft, for models with adapters; peft brings Transformers with it, so they stand in here.
"""

import sys
from types import ModuleType

if "peft" not in sys.modules:
    stand_in = ModuleType("peft")
    vars(stand_in).update(PeftModel=type("PeftModel", (), {}), PeftType=type("PeftType", (), {}))
    sys.modules["peft"] = stand_in
