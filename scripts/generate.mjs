// Writes every generated file of the repository; with --check lists those that are out of date.
// Imports TypeScript directly, hence needs Node 22.18 or newer: run it through npm, which puts the pinned one first.
import { readFile, writeFile } from 'node:fs/promises'

/** Path in the repository and the function that renders the file. */
const generated = [
  { path: 'svc.conf.example', make: async () => (await import('../src/config/example.ts')).renderExample() },
  {
    path: 'docs/cli.md',
    make: async () => (await import('../src/cli/reference/markdown.ts')).renderMarkdown(await readReference()),
  },
  {
    path: 'docs/svc.1',
    make: async () => (await import('../src/cli/reference/manual.ts')).renderManual(await readReference()),
  },
  { path: 'docs/errors.md', make: async () => (await import('./errors-document.ts')).renderErrors() },
]

async function readReference() {
  return (await import('../src/cli/reference/tree.ts')).readReference()
}

const onlyCheck = process.argv.includes('--check')
const outdated = []
for (const { path, make } of generated) {
  const file = new URL(`../${path}`, import.meta.url)
  const text = await make()
  const present = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (present === text) continue
  outdated.push(path)
  if (!onlyCheck) await writeFile(file, text)
}
if (onlyCheck && outdated.length > 0) {
  console.error(`Out of date: ${outdated.join(', ')}. Run "npm run generate".`)
  process.exitCode = 1
} else if (outdated.length > 0) {
  console.log(`Written: ${outdated.join(', ')}`)
}
