/** How a function is declared: its name, its typed parameters, and what it does. */
import type { Runtime } from './runtime.ts'
import type { Scope } from './scope.ts'
import type { ParameterType } from './types.ts'
import type { Value } from './values.ts'

export interface Parameter<T> {
  /** As an expression writes it in `name => value`. */
  readonly name: string
  readonly type: ParameterType<unknown>
  /** `rest`: all further positional arguments, an array; `named`: all further named ones, a map. */
  readonly form: 'one' | 'rest' | 'named'
  /** The value where no argument is given; undefined: the argument is required. */
  readonly fallback: { readonly value: T } | undefined
}

/** A required parameter. */
export const param = <T>(name: string, type: ParameterType<T>): Parameter<T> => ({
  name,
  type,
  form: 'one',
  fallback: undefined,
})

/** A parameter with a default. */
export const optional = <T, D>(name: string, type: ParameterType<T>, fallback: D): Parameter<T | D> => ({
  name,
  type,
  form: 'one',
  fallback: { value: fallback },
})

export const rest = <T>(name: string, type: ParameterType<T>): Parameter<readonly T[]> => ({
  name,
  type,
  form: 'rest',
  fallback: undefined,
})

export const namedRest = <T>(name: string, type: ParameterType<T>): Parameter<ReadonlyMap<string, T>> => ({
  name,
  type,
  form: 'named',
  fallback: undefined,
})

type Arguments<P> = { [K in keyof P]: P[K] extends Parameter<infer T> ? T : never }

/** One way to call a function. */
export interface Overload<Host = never> {
  readonly name: string
  readonly isFunction: boolean
  /** Callable as `receiver.name(…)`; the receiver is the first argument. */
  readonly isMethod: boolean
  /** `key => value` is an argument of its own kind, not an argument by name. */
  readonly takesRules: boolean
  readonly parameters: readonly Parameter<unknown>[]
  run(args: readonly unknown[], runtime: Runtime<Host>, scope: Scope): Value
}

type Declare<Host> = <const P extends readonly Parameter<unknown>[]>(
  name: string,
  parameters: P,
  run: (args: Arguments<P>, runtime: Runtime<Host>, scope: Scope) => Value,
) => Overload<Host>

function declare<Host>(isFunction: boolean, isMethod: boolean): Declare<Host> {
  return (name, parameters, run) => ({
    name,
    isFunction,
    isMethod,
    takesRules: parameters.some(({ type }) => type.form === 'rule'),
    parameters,
    // Each argument has passed the check of its parameter.
    run: run as unknown as Overload<Host>['run'],
  })
}

/** Declares functions that read what the host passes to `evaluate` as `runtime.host`. */
export function declarations<Host>(): {
  /** `name(…)` */
  fn: Declare<Host>
  /** `receiver.name(…)` */
  method: Declare<Host>
  /** Both. */
  extension: Declare<Host>
} {
  return { fn: declare(true, false), method: declare(false, true), extension: declare(true, true) }
}

/** For the functions of the language itself, which know no host. */
export const { fn, method, extension } = declarations<never>()

/** Functions by name. */
export class FunctionTable<Host = never> {
  readonly #overloads = new Map<string, Overload<Host>[]>()

  constructor(overloads: Iterable<Overload<Host>>) {
    for (const overload of overloads) {
      const known = this.#overloads.get(overload.name)
      if (known === undefined) this.#overloads.set(overload.name, [overload])
      else known.push(overload)
    }
  }

  get(name: string): readonly Overload<Host>[] {
    return this.#overloads.get(name) ?? []
  }

  names(): Iterable<string> {
    return this.#overloads.keys()
  }
}
