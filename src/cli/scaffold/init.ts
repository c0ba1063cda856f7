/** A new folder for a server of one's own: configuration, pack, README. */
import { join } from 'node:path'
import { planPack } from './pack.ts'
import type { PlannedFile } from './write-files.ts'

/** @param folder absolute */
export function planFolder(folder: string, pack: string): PlannedFile[] {
  return [
    ...planPack(join(folder, 'packs', pack), pack),
    { path: join(folder, '.gitignore'), text: '# Database, keys and logs of the server.\n/data/\n' },
    { path: join(folder, 'README.md'), text: readmeText(pack) },
    { path: join(folder, 'svc.conf'), text: configuration },
  ]
}

const configuration = `# Configuration of the server that is started in this folder. "svc serve --help" lists all options.
[system]
# Database, keys and logs. A relative path starts in the folder where the server is started.
base_path = data

[content]
# A relative path starts at base_path.
system_packs_base_path = ../packs
`

/** Five lines: each is a command. */
function readmeText(pack: string): string {
  const lines = [
    ['svc serve', 'starts the server here; open http://127.0.0.1:9101'],
    [`svc run ${pack}.hello name=you`, `in a second terminal here: runs packs/${pack}/actions/hello.sh`],
    [`svc action new ${pack}.check --shell`, 'creates an action of your own'],
    [`svc pack register ${pack}`, 'makes the server read the pack now; it also watches the folder'],
    [`svc run ${pack}.check`, 'runs the action; "svc execution list" shows what ran'],
  ] as const
  const width = Math.max(...lines.map(([command]) => command.length))
  return lines.map(([command, about]) => `    ${command.padEnd(width)}  # ${about}\n`).join('')
}
