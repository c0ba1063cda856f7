/** Files that are named on the command line. */
import { pathToOpen } from '../cli-process.ts'
import { readBoundedFile } from '../../lib/files/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'

/** @param text what is wrong, the rest of a sentence that begins with the file */
export function fileProblem(path: string, text: string): CliFailure {
  return new CliFailure(`The file ${printable(path)} ${text}`, exitCodes.usage)
}

/** @throws CliFailure (2) that says why the file cannot be read */
export async function readFileBytes(path: string, maxBytes: number): Promise<Buffer> {
  const file = await readBoundedFile(pathToOpen(path), maxBytes)
  if ('problem' in file) throw fileProblem(path, file.problem)
  return file.bytes
}

/** @throws CliFailure (2) that says why the file cannot be read as UTF-8 */
export async function readTextFile(path: string, maxBytes: number): Promise<string> {
  const bytes = await readFileBytes(path, maxBytes)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw fileProblem(path, 'is not UTF-8')
  }
}

/** What the name of a file says it holds. @throws CliFailure (2) */
export function formOf(path: string): 'json' | 'yaml' {
  const [, form] = /\.(json|ya?ml)$/i.exec(path) ?? []
  if (form === undefined) throw fileProblem(path, 'must end with .json, .yaml or .yml')
  return form.toLowerCase() === 'json' ? 'json' : 'yaml'
}
