/** Regular expressions in Python's notation, which cannot run away. */
import type { RE2JS } from 're2js'
import {
  compileTemplatePattern,
  paySearch,
  TemplateError,
  type Budget,
  type PatternOptions,
} from '../template/index.ts'
import { YaqlError } from './error.ts'

export type PatternFlags = Pick<PatternOptions, 'ignoreCase' | 'multiLine' | 'dotAll'>

/** @throws YaqlError `error` for an invalid pattern, or one that needs more than linear time */
export function searchPattern(pattern: string, flags: PatternFlags, budget: Budget): RE2JS {
  try {
    return compileTemplatePattern(pattern, { ...flags, exactEnd: false }, budget)
  } catch (error) {
    if (!(error instanceof TemplateError) || error.code === 'LIMIT') throw error
    throw new YaqlError('error', error.message)
  }
}

export function isFound(expression: RE2JS, text: string, budget: Budget): boolean {
  paySearch(expression, text, budget)
  return expression.test(text)
}
