import { shown } from '../text/index.ts'

/**
 * `SYNTAX`: invalid template. `UNDEFINED`: a name or attribute is missing. `TYPE`: an operation does not support its
 * values. `LIMIT`: a budget is exhausted. `FILTER`: a filter or test is unknown or rejects its input. `UNSUPPORTED`: svc
 * does not support this part of Jinja2.
 */
export type TemplateErrorCode = 'SYNTAX' | 'UNDEFINED' | 'TYPE' | 'LIMIT' | 'FILTER' | 'UNSUPPORTED'

const classNames: Readonly<Record<TemplateErrorCode, string>> = {
  SYNTAX: 'TemplateSyntaxError',
  UNDEFINED: 'UndefinedError',
  TYPE: 'TypeError',
  LIMIT: 'LimitError',
  FILTER: 'ValueError',
  UNSUPPORTED: 'TemplateSyntaxError',
}

/** A template that cannot be parsed or rendered; the message names templates, names and types, never a value. */
export class TemplateError extends Error {
  readonly code: TemplateErrorCode
  /** The name of the error under Python, which workflows show. */
  readonly className: string
  /** Offset into the template text, in UTF-16 units, where it is known. */
  readonly position: number | undefined
  /** The text may belong to another program: its syntax, a variable, a filter or a test is unknown here. */
  readonly isForeign: boolean

  constructor(
    code: TemplateErrorCode,
    message: string,
    position?: number,
    isForeign = code === 'SYNTAX',
    className = classNames[code],
  ) {
    super(message)
    this.className = className
    this.name = 'TemplateError'
    this.code = code
    this.position = position
    this.isForeign = isForeign
  }
}

/** A template that needs more steps, text or time than its budget has left: with a larger one it could succeed. */
export class BudgetExhausted extends TemplateError {
  constructor(message: string) {
    super('LIMIT', message)
  }
}

export const syntaxError = (message: string, position: number): TemplateError =>
  new TemplateError('SYNTAX', message, position)

/** What a template names exists neither in Jinja2 nor in svc. */
export const foreignError = (
  code: TemplateErrorCode,
  message: string,
  position?: number,
  className?: string,
): TemplateError => new TemplateError(code, message, position, true, className)

export const typeError = (message: string, className?: string): TemplateError =>
  new TemplateError('TYPE', message, undefined, false, className)

export const limitError = (message: string): TemplateError => new TemplateError('LIMIT', message)

export const filterError = (message: string, className?: string): TemplateError =>
  new TemplateError('FILTER', message, undefined, false, className)

export const undefinedError = (message: string, className?: string): TemplateError =>
  new TemplateError('UNDEFINED', message, undefined, false, className)

export const unsupportedError = (message: string): TemplateError => new TemplateError('UNSUPPORTED', message)

/** A name out of a template, shortened and without control characters, in quotes. */
export const quoted = (name: string): string => `'${shown(name)}'`
