/** Reads XML of a Windows host into a small tree, within limits: without document types and entities of its own. */
import { SaxesParser } from 'saxes'

export interface XmlElement {
  /** Without prefix. */
  name: string
  /** Names without prefix. */
  attributes: ReadonlyMap<string, string>
  children: XmlElement[]
  /** Text directly in the element. */
  text: string
}

const MAX_DEPTH = 64
const MAX_ELEMENTS = 20_000

/** @throws Error that says why the text is refused */
export function readXml(text: string): XmlElement {
  const parser = new SaxesParser({ xmlns: true })
  const stack: XmlElement[] = []
  let root: XmlElement | undefined
  let elements = 0
  parser.on('doctype', () => {
    throw new Error('it has a document type, which svc does not read')
  })
  parser.on('opentag', ({ local, attributes }) => {
    elements += 1
    if (elements > MAX_ELEMENTS) throw new Error(`it has more than ${MAX_ELEMENTS} elements`)
    if (stack.length >= MAX_DEPTH) throw new Error(`it nests more than ${MAX_DEPTH} levels`)
    const names = Object.values(attributes).map((attribute) => [attribute.local, attribute.value] as const)
    const element: XmlElement = { name: local, attributes: new Map(names), children: [], text: '' }
    stack.at(-1)?.children.push(element)
    root ??= element
    stack.push(element)
  })
  const append = (piece: string): void => {
    const element = stack.at(-1)
    if (element !== undefined) element.text += piece
  }
  parser.on('text', append)
  parser.on('cdata', append)
  parser.on('closetag', () => {
    stack.pop()
  })
  parser.write(text).close()
  if (root === undefined) throw new Error('it has no element')
  return root
}

/** All elements of the name below and including the given one, in order of the document. */
export function* elementsIn(element: XmlElement, name: string): Generator<XmlElement> {
  if (element.name === name) yield element
  for (const child of element.children) yield* elementsIn(child, name)
}

export function firstIn(element: XmlElement, name: string): XmlElement | undefined {
  const { value } = elementsIn(element, name).next() as { value: XmlElement | undefined }
  return value
}

/** A character that XML cannot contain, as a lone half of a pair. */
// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/u

/** Whether XML can contain the text. */
export function fitsXml(text: string): boolean {
  return !FORBIDDEN.test(text)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\r': '&#13;',
  '\n': '&#10;',
  '\t': '&#9;',
}

/** Text of an element or attribute. */
export function xmlText(text: string): string {
  return text.replace(/[&<>"'\r\n\t]/g, (character) => ESCAPES[character] ?? character)
}
