"""Compares our schema validator's verdicts with the Python package jsonschema's.

Usage: validate.py SCHEMAS DOCUMENTS. DOCUMENTS holds one {"kind", "valid", "change", "document"} a line. Exits 1 when they differ
or a schema is none, 77 without jsonschema.
"""

import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

validators = {}
for path in pathlib.Path(sys.argv[1]).glob("*.json"):
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    validators[path.stem] = Draft202012Validator(schema)
different = count = 0
for line in open(sys.argv[2]):
    case = json.loads(line)
    count += 1
    if validators[case["kind"]].is_valid(case["document"]) != case["valid"]:
        different += 1
        print(f"{case['kind']}: {case.get('change')}: we say {'valid' if case['valid'] else 'invalid'}, jsonschema does not")
print(f"{count} documents, {different} verdicts differ")
sys.exit(1 if different or count == 0 else 0)
