/** Reads definition files for `create` and `update`: one record in YAML or JSON (contract 09, 9.3). */
import {
  describeProblem,
  readJsonDocument,
  readStrictYamlDocument,
  type MetadataProblem,
} from '../../lib/text/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable, type Json } from '../output/print.ts'
import { formOf, readTextFile } from './text-file.ts'

const MAX_BYTES = 1024 * 1024

/**
 * Reads one mapping. YAML is read as the server reads the files of packs.
 *
 * @throws CliFailure (2) that names the file, and the line where that is known
 */
export async function readRecordFile(path: string): Promise<Json> {
  const form = formOf(path)
  const text = await readTextFile(path, MAX_BYTES)
  const document = form === 'json' ? readJsonDocument(text) : readStrictYamlDocument(text)
  if ('problem' in document) throw problemIn(path, document.problem)
  const { value } = document
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw problemIn(path, {
    message:
      value === null
        ? 'the file is empty; it must contain a mapping'
        : `the file must contain a mapping, not ${kindOf(value)}`,
  })
}

function problemIn(file: string, problem: MetadataProblem): CliFailure {
  return new CliFailure(printable(describeProblem({ file, ...problem })), exitCodes.usage)
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return `a ${typeof value}`
}
