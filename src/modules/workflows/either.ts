/** A definition that is a workflow or an action chain, whichever its text is. */
import { isObject } from '../../lib/schema/index.ts'
import { loadChain, readChain, type Chain } from './chain/index.ts'
import { graphOf } from './definition/graph-record.ts'
import { readDefinition, type Definition } from './definition/model.ts'
import { loadDefinition } from './definition/read.ts'
import type { WorkflowGraph } from './types.ts'

/** `definition` of a chain: its nodes as tasks. */
export type Either =
  | { readonly runner: 'orquesta'; readonly definition: Definition; readonly chain: undefined }
  | { readonly runner: 'action-chain'; readonly definition: Definition; readonly chain: Chain }

/** Only a text with such a key can be a chain. */
const chainKey = /(?:^|[\s{,])["']?chain["']?\s*:/

/** As inspection tells them apart: a mapping with the key `chain` and without `tasks` is a chain. @returns or why it cannot be read: the end of a sentence */
export function readEither(text: string): Either | { readonly problem: string } {
  if (chainKey.test(text)) {
    const loaded = loadChain(text)
    const isChain = 'problem' in loaded ? /^chain\s*:/m.test(text) : isChainDocument(loaded.value)
    if (isChain) return readAsChain(text)
  }
  const document = loadDefinition(text)
  if ('problem' in document) return document
  return { runner: 'orquesta', definition: readDefinition(document.value), chain: undefined }
}

const isChainDocument = (value: unknown): boolean =>
  isObject(value) && Object.hasOwn(value, 'chain') && !Object.hasOwn(value, 'tasks')

function readAsChain(text: string): Either | { readonly problem: string } {
  const chain = readChain(text, { action: 'chain', file: 'the file' })
  if (!('problem' in chain)) return { runner: 'action-chain', definition: chain.graph, chain }
  const reason = chain.problem
    .replace(/^Failed to parse action chain definition from "[^"]*": /, '')
    .replace(/\.?$/, '.')
  return { problem: chain.line === undefined ? reason : `${reason} See line ${chain.line}.` }
}

export function graphOfText(text: string): WorkflowGraph | { readonly problem: string } {
  const read = readEither(text)
  return 'problem' in read ? read : graphOf(read.definition, read.runner)
}
