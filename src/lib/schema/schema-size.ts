/** What compiling a schema costs. */
import { patternSize } from './pattern-size.ts'
import { isObject } from './types.ts'

export interface SchemaSize {
  /** Values, without descriptions, defaults, choices and other attributes that are not compiled. */
  nodes: number
  /** Instructions of regular expressions. */
  patterns: number
}

export function sizeOfSchema(schema: unknown): SchemaSize {
  const size: SchemaSize = { nodes: 0, patterns: 0 }
  const walk = (value: unknown): void => {
    size.nodes += 1
    if (Array.isArray(value)) value.forEach(walk)
    if (!isObject(value)) return
    for (const [name, inner] of Object.entries(value)) {
      if (uncompiled.has(name) && !isObject(inner)) continue
      // Their items are not compiled one by one.
      if (name === 'default' || (name === 'enum' && Array.isArray(inner))) continue
      if (name === 'pattern' && typeof inner === 'string') size.patterns += patternSize(inner)
      if (name === 'patternProperties' && isObject(inner)) {
        for (const pattern of Object.keys(inner)) size.patterns += patternSize(pattern)
      }
      walk(inner)
    }
  }
  walk(schema)
  return size
}

/** Attributes; a property of the same name is an object. */
const uncompiled: ReadonlySet<string> = new Set(['title', 'description', 'immutable', 'secret', 'position', 'required'])
