import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startScript } from './interpreters.ts'

/** Reads expressions, and writes the JSON of each value or null. */
const PROGRAM = String.raw`
import collections, dataclasses, datetime, enum, json, sys, uuid
from datetime import date, datetime as moment, time, timedelta, timezone
sys.path.insert(0, sys.argv[1])
from svc.result import NotJson, to_json

class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)
    DAY = date(2020, 1, 1)
    OTHER = object()
class Word(str, enum.Enum): A = "a"
class Half(float, enum.Enum): A = 0.5
class Num(enum.IntEnum):
    ONE = 1
    BIG = 10**4300
class Bits(enum.Flag):
    A = 1
    B = 2
class MyStr(str):
    def __str__(self): return "no"
class MyInt(int):
    def __int__(self): return 7
class MyFloat(float): pass
class MyList(list):
    def __iter__(self): return iter(["no"])
class MyDict(dict):
    def items(self): return []
class MyTuple(tuple): pass
class MyMoment(moment): pass
class MyUUID(uuid.UUID): pass
Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass
class Data:
    x: int = 1
    _p: int = 2
    n: object = None
class Derived(Data): pass
@dataclasses.dataclass
class Extended(Data): z: int = 5
@dataclasses.dataclass
class Slots:
    __slots__ = ("x", "_p")
    x: int
    _p: int
class Json:
    def __init__(self, value): self.value = value
    def __json__(self): return self.value
class NoOffset(datetime.tzinfo):
    def utcoffset(self, _): return None
class Broken(datetime.tzinfo):
    def utcoffset(self, _): raise KeyError()
def deep(levels, make=lambda x: [x]):
    made = 1
    for _ in range(levels): made = make(made)
    return made
def zone(**offset): return moment(2020, 1, 1, tzinfo=timezone(timedelta(**offset)))

def answer(text):
    limit = sys.getrecursionlimit()
    try:
        return json.dumps(to_json(eval(text)), allow_nan=False)
    except NotJson:
        return None
    finally:
        assert sys.getrecursionlimit() == limit
json.dump([answer(text) for text in json.load(sys.stdin)], sys.stdout)
`

/** Null: no JSON form. They are what orjson 3.12 makes of the same values; it has no whole numbers beyond 64 bits. */
const rows: Readonly<Record<string, string | null>> = {
  '[1, 1.0, -0.0, 2**64 - 1, -2**63]': '[1, 1.0, -0.0, 18446744073709551615, -9223372036854775808]',
  '[2**64, -2**63 - 1]': '[18446744073709551616, -9223372036854775809]',
  'len(str(10**4298))': '4299',
  'len(json.dumps(to_json(10**4298)))': '4299',
  '10**4299': null,
  '[float("inf"), -float("inf"), float("nan")]': '[null, null, null]',
  'b"caf\\xc3\\xa9"': String.raw`"caf\u00e9"`,
  'b"\\xff"': null,
  'bytearray(b"x")': null,
  '"\\ud800"': null,
  '{"\\ud800": 1}': null,
  '{1: 2}': null,
  '{MyStr("k"): 1}': null,
  '{Word.A: 1}': null,
  '{"a": (1, (2,))}': '{"a": [1, [2]]}',
  'Pair(1, 2)': null,
  '[Pair(1, 2)]': null,
  'MyTuple((1,))': null,
  '[MyStr("s"), MyInt(5), MyList([1]), MyDict(a=1)]': '["s", 5, [1], {"a": 1}]',
  'MyInt(2**70)': '1180591620717411303424',
  'MyFloat(1.5)': null,
  'collections.deque([1])': null,
  'collections.UserDict(a=1)': null,
  'collections.OrderedDict([("b", 1), ("a", 2)])': '{"b": 1, "a": 2}',
  '[Colour.RED, Num.ONE, Word.A, Half.A]': '["red", 1, "a", 0.5]',
  '[Colour.PAIR, Colour.DAY]': '[[1, 2], "2020-01-01"]',
  'Colour.OTHER': null,
  Colour: null,
  'Num.BIG': null,
  'Bits.A | Bits.B': '3',
  '[Data(), Extended()]': '[{"x": 1, "n": null}, {"x": 1, "n": null, "z": 5}]',
  'Slots(1, 2)': '{"x": 1}',
  'Derived()': null,
  Data: null,
  'moment(1, 1, 1)': '"0001-01-01T00:00:00"',
  'moment(2020, 1, 2, 3, 4, 5, 600000)': '"2020-01-02T03:04:05.600000"',
  'zone(hours=-3, minutes=-30)': '"2020-01-01T00:00:00-03:30"',
  'zone(minutes=19, seconds=32)': '"2020-01-01T00:00:00+00:20"',
  'moment(2020, 1, 1, tzinfo=NoOffset())': '"2020-01-01T00:00:00+00:00"',
  'moment(2020, 1, 1, tzinfo=Broken())': null,
  'MyMoment(2020, 1, 1)': null,
  '[date(1, 1, 1), time(3, 4, 5, 7)]': '["0001-01-01", "03:04:05.000007"]',
  'time(3, tzinfo=timezone.utc)': null,
  'timedelta(1)': null,
  '[uuid.UUID(int=5)]': '["00000000-0000-0000-0000-000000000005"]',
  'MyUUID(int=5)': null,
  'Json(Json({"a": Json(b"x")}))': '{"a": "x"}',
  'Json(object())': null,
  Json: null,
  'len(str(deep(253)))': '507',
  'deep(254)': null,
  'deep(254, lambda x: {"a": x})': null,
  'deep(254, lambda x: Json([x]))': null,
  'deep(20000, lambda x: (x,))': null,
  '{1, 2}': null,
  'range(3)': null,
}

test('values become JSON, or have no JSON form', () => {
  const { stdout, stderr } = spawnSync('python3', ['-c', PROGRAM, dirname(fileURLToPath(startScript))], {
    input: JSON.stringify(Object.keys(rows)),
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  const answers = JSON.parse(stdout) as unknown[]
  expect(Object.fromEntries(Object.keys(rows).map((text, index) => [text, answers[index]]))).toEqual(rows)
})
