import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Overload } from '../signature.ts'
import { library } from './index.ts'

/** A function of the original engine. */
interface Recorded {
  layer: number
  fn: boolean
  method: boolean
  /** name, type (`?`: null too), default */
  params: [string, string, string?][]
}

const file = new URL('../../../../tests/golden/workflows/yaql_functions.json', import.meta.url)
// The recorder writes this shape.
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Recorded[]>

/** What is part of the evaluation. */
const elsewhere = new Set(
  '#finalize #get_context_data #iter #list #map #operator_-> #operator_. #operator_?. #operator_and #operator_or'.split(
    ' ',
  ),
)

const shown = (isFunction: boolean, isMethod: boolean, parameters: string[]): string =>
  `${isFunction ? 'function ' : ''}${isMethod ? 'method ' : ''}(${parameters.join(', ')})`

const ofLibrary = ({ isFunction, isMethod, parameters }: Overload): string =>
  shown(
    isFunction,
    isMethod,
    parameters.map(
      ({ type, fallback, name }) =>
        `${name.replace(/^(?:dt|ts)[12]$/, 'x')}: ${type.name}${type.isNullable ? '?' : ''}${fallback === undefined ? '' : '='}`,
    ),
  )

const ofRecord = ({ fn, method, params }: Recorded): string =>
  shown(
    fn,
    method,
    params.map(([name, type, fallback]) => {
      const plain = type.replace('py:', '').replace('DateTime', 'datetime')
      return `${name.replace(/^(?:dt|ts)[12]$/, 'x')}: ${plain}${fallback === undefined ? '' : '='}`
    }),
  )

const withoutNames = (overloads: string[]): string[] =>
  // Operators are not called by name, so only the types of their operands matter.
  overloads.map((overload) => overload.replace(/\w+: /g, ''))

test('the library has every function, with the same overloads, types, names and defaults', () => {
  for (const [name, overloads] of Object.entries(recorded)) {
    if (elsewhere.has(name)) continue
    // Layer 0 belongs to the host.
    const wanted = overloads.filter(({ layer }) => layer !== 0).map(ofRecord)
    const found = library().get(name).map(ofLibrary)
    const compare = /^[#*]/.test(name) ? withoutNames : (all: string[]) => all
    expect([name, ...compare(found).toSorted()]).toEqual([name, ...compare(wanted).toSorted()])
  }
  expect([...library().names()].filter((name) => !Object.hasOwn(recorded, name))).toEqual([])
})
