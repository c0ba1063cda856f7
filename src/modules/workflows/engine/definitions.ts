/** Reads the definitions of workflows from files, and keeps compiled ones. */
import { Lru } from '../../../lib/cache/index.ts'
import { readContainedFile, type ContainedProblem } from '../../../lib/files/index.ts'
import { loadDefinition, MAX_DEFINITION_BYTES } from '../definition/read.ts'
import { readDefinition, type Definition } from '../definition/model.ts'

const MAX_KEPT = 500
const MAX_KEPT_CHARS = 16 * 1024 * 1024

export interface Definitions {
  /** @param text of a definition that can be read */
  compile(text: string): Definition
  /**
   * The text of a definition.
   *
   * @param entryPoint of the action, relative to the actions of its pack
   * @returns or why it cannot be read: the end of a sentence
   */
  readFile(packFolder: string, entryPoint: string): Promise<{ text: string } | { problem: string }>
}

export function createDefinitions(): Definitions {
  const compiled = new Lru<string, Definition>(MAX_KEPT, MAX_KEPT_CHARS)
  return {
    compile(text) {
      const known = compiled.get(text)
      if (known !== undefined) return known
      const document = loadDefinition(text)
      const definition = readDefinition('problem' in document ? undefined : document.value)
      compiled.set(text, definition, text.length)
      return definition
    },
    async readFile(packFolder, entryPoint) {
      if (entryPoint === '') return { problem: 'the action has no entry_point.' }
      const file = await readContainedFile(packFolder, `actions/${entryPoint}`, MAX_DEFINITION_BYTES)
      if ('text' in file) return file
      return { problem: `of the file ${entryPoint}: ${problems[file.problem]}.` }
    },
  }
}

const problems: Readonly<Record<ContainedProblem, string>> = {
  missing: 'it does not exist',
  outside: 'it is not below the folder of the pack',
  unreadable: 'it cannot be read',
  'not a file': 'it is not a file',
  'too large': `it has more than ${MAX_DEFINITION_BYTES} bytes`,
  'not UTF-8': 'it is not UTF-8 text',
}
