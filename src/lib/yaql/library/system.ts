/** Variables, functions and contexts: `let`, `with`, `def`, `unpack`, `call`, `assert`. */
import { valueError, YaqlError } from '../error.ts'
import { memorize } from './sequences.ts'
import { Scope, type DefinedFunctions } from '../scope.ts'
import { fn, method, namedRest, optional, param, rest, type Overload } from '../signature.ts'
import { Any, Dictionary, Fn, Items, List, Text } from '../types.ts'
import { adopt, entriesOfMapping, typeNameOf, type Value } from '../values.ts'

export const system: readonly Overload[] = [
  fn(
    'let',
    [rest('args', Any), namedRest('kwargs', Any)],
    ([args, named], _runtime, scope) => new Scope(scope, args, named),
  ),
  fn('with', [rest('args', Any)], ([args], _runtime, scope) => new Scope(scope, args)),
  fn('def', [param('name', Text), param('func', Fn)], ([name, body], _runtime, scope) => {
    // The body sees what the place of the definition sees, and the function itself.
    const call: DefinedFunctions['call'] = (args, named) => body.callIn(inner, args, named)
    const inner: Scope = new Scope(scope, undefined, undefined, { name, call, outer: scope.functions })
    return inner
  }),
  method('unpack', [param('sequence', Items), rest('args', Text)], ([sequence, names], runtime, scope) => {
    const items = runtime.list(sequence)
    if (names.length === 0) return new Scope(scope, items)
    if (names.length !== items.length) {
      throw valueError(`Cannot unpack ${items.length} elements into ${names.length}`)
    }
    return new Scope(scope, undefined, new Map(names.map((name, index) => [name, items[index] ?? null])))
  }),
  method(
    'assert',
    [param('obj', Any), param('condition', Fn), optional('message', Text, 'Assertion failed')],
    ([given, holds, message], runtime) => {
      const value = memorize(given, runtime)
      if (!runtime.isTrue(holds.call([value]))) throw new YaqlError('AssertionError', message)
      return value
    },
  ),
  fn(
    'call',
    [param('name', Text), param('args', List), param('kwargs', Dictionary), optional('receiver', Any, undefined)],
    ([name, args, kwargs, receiver], runtime, scope) => {
      const named = new Map<string, Value>()
      for (const [key, value] of entriesOfMapping(kwargs)) {
        if (typeof key !== 'string') throw new YaqlError('ArgumentException', `Invalid argument ${typeNameOf(key)}`)
        named.set(key, value)
      }
      const values = args.map(adopt)
      return receiver === undefined
        ? runtime.call(name, values, named, scope)
        : runtime.callMethod(name, receiver, values, named, scope)
    },
  ),
]
