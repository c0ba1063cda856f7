import type { Expression, FilterStep, MacroStatement, Parameter, Statement, Target, Template } from './ast.ts'
import { foreignError, limitError, quoted, syntaxError } from './error.ts'
import { ExpressionParser } from './expression-parser.ts'
import { tokenize, tokenizeExpression, type LexerOptions, type Token } from './lexer.ts'
import { MAX_SOURCE_LENGTH } from './limits.ts'
import { readsOfMacro } from './references.ts'

/** Statements of Jinja2 that load other templates or change the output mode; a template here is one text. */
const unsupported: readonly string[] = ['include', 'import', 'from', 'extends', 'autoescape']

/** Statements that Jinja2 knows only with an extension. */
const foreign: readonly string[] = ['do', 'trans']

/**
 * Parses template text; throws `TemplateError` with code SYNTAX, LIMIT or UNSUPPORTED.
 *
 * @param tokens see `tokenize`
 */
export function parse(source: string, tokens: Token[] = [], options: LexerOptions = {}): Template {
  requireLength(source)
  return new Parser(tokenize(source, tokens, options)).parseTemplate()
}

/** Parses what stands between `{{` and `}}`; throws as `parse` does. */
export function parseExpression(source: string): Expression {
  requireLength(source)
  const tokens = tokenizeExpression(source)
  // Jinja2 names the line of a mistake at the very start only.
  const mistake = tokens[0]?.error
  if (mistake !== undefined) throw syntaxError(`${mistake.message}\n  line 1`, 0)
  return new Parser(tokens).parseOnly()
}

function requireLength(source: string): void {
  if (source.length > MAX_SOURCE_LENGTH) {
    throw limitError(`the template is longer than ${MAX_SOURCE_LENGTH} characters`)
  }
}

class Parser extends ExpressionParser {
  /** The open blocks, outermost first: their names, and the tags that each waits for. */
  readonly #open: { name: string; ends: readonly string[] }[] = []

  parseOnly(): Expression {
    const expression = this.parseExpression()
    if (!this.is('end')) throw syntaxError('chunk after expression', this.current.position)
    return expression
  }

  parseTemplate(): Template {
    const body = this.#parseBody()
    if (!this.is('end')) throw this.unexpected()
    const [only] = body
    return { body, single: body.length === 1 && only?.kind === 'output' ? only.value : undefined }
  }

  /** Statements up to one of the `ends`, which is left unread. */
  #parseBody(...ends: string[]): Statement[] {
    const body: Statement[] = []
    const block = this.#open.at(-1)
    if (block !== undefined) block.ends = ends
    for (;;) {
      if (this.is('text')) {
        body.push({ kind: 'text', text: this.next().value })
      } else if (this.skip('variable-begin')) {
        body.push({ kind: 'output', value: this.parseTuple() })
        this.expect('variable-end')
      } else if (this.is('block-begin') && !this.nextIsBlock(...ends)) {
        body.push(this.nested(() => this.#parseStatement()))
      } else {
        if (block !== undefined && this.is('end')) {
          throw syntaxError(`Unexpected end of template.${this.#expectation()}`, this.current.position)
        }
        return body
      }
    }
  }

  /** What the innermost open block waits for; `name` is the tag that stands there instead. */
  #expectation(name?: string): string {
    const block = this.#open.at(-1)
    if (block === undefined) return ''
    const tags = block.ends.map(quoted).join(' or ')
    const isOuter = name !== undefined && this.#open.some(({ ends }) => ends.includes(name))
    const what = isOuter
      ? `You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for ${tags}.`
      : `Jinja was looking for the following tags: ${tags}.`
    return ` ${what} The innermost block that needs to be closed is ${quoted(block.name)}.`
  }

  #unknownTag(name: string, position: number): Error {
    const message = `Encountered unknown tag ${quoted(name)}.${this.#expectation(name)}`
    return foreign.includes(name) ? foreignError('UNSUPPORTED', message, position) : syntaxError(message, position)
  }

  #parseStatement(): Statement {
    const { position } = this.expect('block-begin')
    if (!this.is('name')) throw syntaxError('tag name expected', this.current.position)
    const name = this.next().value
    this.#open.push({ name, ends: [] })
    const statement = this.#statement(name, position)
    this.#open.pop()
    return statement
  }

  #statement(name: string, position: number): Statement {
    switch (name) {
      case 'if':
        return this.#parseIf()
      case 'for':
        return this.#parseFor()
      case 'set':
        return this.#parseSet()
      case 'with':
        return this.#parseWith()
      case 'filter':
        return this.#parseFilterBlock()
      case 'macro':
        return this.#parseMacro()
      case 'call':
        return this.#parseCallBlock()
      case 'block':
        return this.#parseNamedBlock()
      default:
        this.#open.pop()
        if (!unsupported.includes(name)) throw this.#unknownTag(name, position)
        throw foreignError('UNSUPPORTED', `the statement {% ${name} %} cannot be used here`, position, 'TypeError')
    }
  }

  #endBlock(name: string): void {
    this.expect('block-begin')
    this.expect('name', name)
    this.expect('block-end')
  }

  #parseIf(): Statement {
    const branches: { test: Expression; body: readonly Statement[] }[] = []
    let otherwise: readonly Statement[] | undefined
    do {
      const test = this.parseTuple(false)
      this.expect('block-end')
      branches.push({ test, body: this.#parseBody('elif', 'else', 'endif') })
      this.expect('block-begin')
    } while (this.skip('name', 'elif'))
    if (this.skip('name', 'else')) {
      this.expect('block-end')
      otherwise = this.#parseBody('endif')
      this.expect('block-begin')
    }
    this.expect('name', 'endif')
    this.expect('block-end')
    return { kind: 'if', branches, otherwise }
  }

  #parseFor(): Statement {
    const target = this.#parseTarget(() => this.is('name', 'in'))
    this.expect('name', 'in')
    const iterable = this.parseTuple(false, () => this.is('name', 'recursive'))
    const test = this.skip('name', 'if') ? this.parseExpression() : undefined
    const recursive = this.skip('name', 'recursive')
    this.expect('block-end')
    const body = this.#parseBody('endfor', 'else')
    let otherwise: readonly Statement[] = []
    this.expect('block-begin')
    if (this.skip('name', 'else')) {
      this.expect('block-end')
      otherwise = this.#parseBody('endfor')
      this.expect('block-begin')
    }
    this.expect('name', 'endfor')
    this.expect('block-end')
    return { kind: 'for', target, iterable, test, recursive, body, otherwise }
  }

  #parseTarget(ends: () => boolean = () => this.is('operator', '=')): Target {
    const items: Target[] = []
    let comma = false
    while (!ends() && !this.is('block-end') && !this.is('operator', ')') && !this.is('operator', '|')) {
      if (items.length > 0) this.expect('operator', ',')
      if (ends()) break
      items.push(this.#parseTargetItem())
      if (!this.is('operator', ',')) break
      comma = true
    }
    const [first] = items
    if (first === undefined) throw this.missingExpression()
    return comma ? { kind: 'tuple', items } : first
  }

  #parseTargetItem(): Target {
    if (this.skip('operator', '(')) {
      const target = this.nested(() => this.#parseTarget(() => this.is('operator', ')')))
      this.expect('operator', ')')
      return target
    }
    const { value: name, position } = this.expect('name')
    if (['true', 'false', 'none', 'True', 'False', 'None'].includes(name)) {
      throw syntaxError(`${quoted(name)} cannot be assigned to`, position)
    }
    if (!this.skip('operator', '.')) return { kind: 'name', name }
    return { kind: 'member', object: name, name: this.expect('name').value }
  }

  #parseSet(): Statement {
    const target = this.#parseTarget()
    if (this.skip('operator', '=')) {
      const value = this.parseTuple()
      this.expect('block-end')
      return { kind: 'set', target, value }
    }
    if (target.kind === 'tuple') throw this.unexpected("'='")
    const filters = this.is('operator', '|') ? this.#parseFilterSteps(true) : []
    this.expect('block-end')
    const body = this.#parseBody('endset')
    this.#endBlock('endset')
    return { kind: 'set-block', target, filters, body }
  }

  #parseFilterSteps(withBar: boolean): FilterStep[] {
    const steps = [this.parseFilterStep(withBar)]
    while (this.is('operator', '|')) steps.push(this.parseFilterStep())
    return steps
  }

  #parseWith(): Statement {
    const bindings: { target: Target; value: Expression }[] = []
    while (!this.is('block-end')) {
      if (bindings.length > 0) this.expect('operator', ',')
      const target = this.#parseTargetItem()
      this.expect('operator', '=')
      bindings.push({ target, value: this.parseExpression() })
    }
    this.expect('block-end')
    const body = this.#parseBody('endwith')
    this.#endBlock('endwith')
    return { kind: 'with', bindings, body }
  }

  #parseFilterBlock(): Statement {
    const filters = this.#parseFilterSteps(false)
    this.expect('block-end')
    const body = this.#parseBody('endfilter')
    this.#endBlock('endfilter')
    return { kind: 'filter-block', filters, body }
  }

  #parseMacro(): MacroStatement {
    const name = this.expect('name').value
    const parameters = this.#parseParameters()
    this.expect('block-end')
    const body = this.#parseBody('endmacro')
    this.#endBlock('endmacro')
    return macroOf(name, parameters, body)
  }

  #parseCallBlock(): Statement {
    const parameters = this.is('operator', '(') ? this.#parseParameters() : []
    const { position } = this.current
    const call = this.parseExpression()
    if (call.kind !== 'call') throw syntaxError('{% call %} needs a call of a macro', position)
    this.expect('block-end')
    const body = this.#parseBody('endcall')
    this.#endBlock('endcall')
    return { kind: 'call-block', caller: macroOf('caller', parameters, body), call }
  }

  /** `{% block name %}`: nothing replaces it, so its body stands where it is. */
  #parseNamedBlock(): Statement {
    this.expect('name')
    while (this.skip('name', 'scoped') || this.skip('name', 'required'));
    this.expect('block-end')
    const body = this.#parseBody('endblock')
    this.expect('block-begin')
    this.expect('name', 'endblock')
    this.skip('name')
    this.expect('block-end')
    return { kind: 'with', bindings: [], body }
  }

  #parseParameters(): Parameter[] {
    this.expect('operator', '(')
    const parameters: Parameter[] = []
    while (!this.is('operator', ')')) {
      if (parameters.length > 0) this.expect('operator', ',')
      if (this.is('operator', ')')) break
      const { value: name, position } = this.expect('name')
      if (parameters.some((parameter) => parameter.name === name)) {
        throw syntaxError(`the parameter ${quoted(name)} appears twice`, position)
      }
      const fallback = this.skip('operator', '=') ? this.parseExpression() : undefined
      if (fallback === undefined && parameters.at(-1)?.fallback !== undefined) {
        throw syntaxError(`the parameter ${quoted(name)} needs a default, as the one before it has one`, position)
      }
      parameters.push({ name, fallback })
    }
    this.expect('operator', ')')
    return parameters
  }
}

function macroOf(name: string, parameters: readonly Parameter[], body: readonly Statement[]): MacroStatement {
  const read = readsOfMacro(body)
  const takes = { varargs: read.has('varargs'), kwargs: read.has('kwargs'), caller: read.has('caller') }
  return { kind: 'macro', name, parameters, body, takes }
}
