/**
 * `npm run imports`: the import graph of the sources, as rooms (folders with one purpose), the edges between them and the
 * circles between files. Ends with 1 when there is a circle. `tests/boundaries.test.ts` reads the same graph.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// Comments, strings, templates, and regular expressions where an expression may begin.
const LEXEME =
  /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\[^]|[^'\\\n])*'|"(?:\\[^]|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|(?<=(?:[(,=:[!&|?{};\n]|=>|\breturn)[ \t]*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\//g
const STATEMENT = /^[ \t]*(?:import|export)\b\s*(type\b\s*)?(?:[^'"();=]*?\bfrom\s*)?(['"])([^'"\n]+)\2/gm
const DYNAMIC = /\bimport\s*\(\s*(['"])([^'"\n]+)\1/g

/** The code without comments, templates and regular expressions. Other strings stay, since imports are strings. */
export function stripText(source: string): string {
  return source.replace(LEXEME, (lexeme) => {
    if (lexeme.startsWith("'") || lexeme.startsWith('"')) return lexeme
    return lexeme.startsWith('//') || lexeme.startsWith('/*') ? '' : '0'
  })
}

export interface Import {
  specifier: string
  kind: 'static' | 'type' | 'dynamic'
}

/** The imports and re-exports of one file. */
export function findImports(source: string): Import[] {
  const code = stripText(source)
  const statements = [...code.matchAll(STATEMENT)].map(([, type, , specifier = '']): Import => ({
    specifier,
    kind: type === undefined ? 'static' : 'type',
  }))
  const dynamic = [...code.matchAll(DYNAMIC)].map(([, , specifier = '']): Import => ({ specifier, kind: 'dynamic' }))
  return [...statements, ...dynamic]
}

/** The source files of the product, relative to the repository, without tests. */
export function listSources(): string[] {
  return ['src', 'migrations', 'web']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    )
    .filter((file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file) && !file.endsWith('.d.ts'))
    .toSorted()
}

interface Edge {
  target: string
  kind: Import['kind']
}

/** File → the files of the product that it imports. */
export function readGraph(): Map<string, Edge[]> {
  const sources = new Set(listSources())
  const graph = new Map<string, Edge[]>()
  for (const file of sources) {
    const imports = findImports(readFileSync(join(root, file), 'utf8'))
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier, kind }) => ({ target: posix.join(posix.dirname(file), specifier), kind }))
    graph.set(
      file,
      imports.filter(({ target }) => sources.has(target)),
    )
  }
  return graph
}

/** The folder whose purpose a file serves: `src/lib/text`, `src/modules/rules`, `src/http`, `web`. */
export function roomOf(file: string): string {
  return /^(?:src\/(?:lib|modules)\/[^/]+|src\/[^/]+|[^/]+)(?=\/)/.exec(file)?.[0] ?? file
}

/** Groups of files that import each other, types included (Tarjan's strongly connected components). */
export function findCircles(graph: ReadonlyMap<string, readonly Edge[]>): string[][] {
  const circles: string[][] = []
  const numbers = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const visit = (file: string): number => {
    const number = numbers.size
    numbers.set(file, number)
    let low = number
    lowest.set(file, number)
    stack.push(file)
    const targets = (graph.get(file) ?? []).filter(({ kind }) => kind !== 'dynamic').map(({ target }) => target)
    for (const target of targets) {
      const reached = numbers.has(target) ? lowest.get(target) : visit(target)
      if (stack.includes(target)) low = Math.min(low, reached ?? low)
    }
    lowest.set(file, low)
    if (low !== number) return low
    const members = stack.splice(stack.indexOf(file))
    if (members.length > 1 || targets.includes(file)) circles.push(members.toSorted())
    return low
  }
  for (const file of graph.keys()) if (!numbers.has(file)) visit(file)
  return circles
}

/** @returns how many circles there are */
function printGraph(): number {
  const graph = readGraph()
  const rooms = new Map<string, { files: number; targets: Set<string> }>()
  for (const [file, imports] of graph) {
    const room = roomOf(file)
    const entry = rooms.get(room) ?? { files: 0, targets: new Set<string>() }
    rooms.set(room, entry)
    entry.files += 1
    for (const { target } of imports) if (roomOf(target) !== room) entry.targets.add(roomOf(target))
  }
  const lines = [...rooms].map(
    ([room, { files, targets }]) => `${room} (${files}) → ${[...targets].toSorted().join(', ') || 'nothing'}`,
  )
  const edges = [...rooms.values()].reduce((sum, { targets }) => sum + targets.size, 0)
  const circles = findCircles(graph)
  process.stdout.write(
    [
      ...lines.toSorted(),
      '',
      `${graph.size} files, ${rooms.size} rooms, ${edges} edges between rooms, ${circles.length} circles`,
      ...circles.map((members) => `circle: ${members.join(', ')}`),
      '',
    ].join('\n'),
  )
  return circles.length
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = printGraph() === 0 ? 0 : 1
