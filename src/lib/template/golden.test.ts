import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { render, TemplateError, type TemplateErrorCode } from './render.ts'

interface Case {
  template: string
  text?: string
  error?: string
}

/** Which of our codes stand for a class of Python's errors. */
const codesOf: Readonly<Record<string, readonly TemplateErrorCode[]>> = {
  UndefinedError: ['UNDEFINED'],
  TemplateSyntaxError: ['SYNTAX', 'UNSUPPORTED'],
  TemplateAssertionError: ['FILTER', 'SYNTAX'],
  TemplateRuntimeError: ['TYPE', 'FILTER'],
  FilterArgumentError: ['TYPE', 'FILTER'],
  AssertionError: ['TYPE'],
  AttributeError: ['TYPE'],
  IndexError: ['TYPE', 'FILTER'],
  KeyError: ['TYPE'],
  OverflowError: ['TYPE'],
  SyntaxError: ['SYNTAX'],
  TypeError: ['TYPE'],
  ValueError: ['TYPE'],
  ZeroDivisionError: ['TYPE'],
}

interface GoldenFile {
  context: Record<string, unknown>
  cases: Case[]
}

const folder = new URL('../../../tests/golden/jinja/', import.meta.url)
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => {
    // The generator writes this shape.
    const content = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as GoldenFile
    return { name: name.replace('.json', ''), ...content }
  })

/** The text a template prints: the empty expression before it keeps a single one from giving its native value. */
function print(template: string, context: Record<string, unknown>): unknown {
  return render(`{{ '' }}${template}`, context)
}

function outcomeOf(template: string, context: Record<string, unknown>): string {
  try {
    return `text: ${String(print(template, context))}`
  } catch (error) {
    if (error instanceof TemplateError) return `error: ${error.code}`
    throw error
  }
}

function acceptableOutcomes({ text, error = '' }: Case): string[] {
  return text === undefined ? (codesOf[error] ?? []).map((code) => `error: ${code}`) : [`text: ${text}`]
}

test('there are enough cases', () => {
  expect(files.reduce((sum, { cases }) => sum + cases.length, 0)).toBeGreaterThan(500)
})

describe.each(files)('$name', ({ context, cases }) => {
  test.each(cases)('$template', (each) => {
    expect(acceptableOutcomes(each)).toContain(outcomeOf(each.template, context))
  })
})
