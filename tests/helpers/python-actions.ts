/** Files of Python actions, made by tests. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

let count = 0

/** A pack in the folder with an action whose `run` has this body; its class is called `Example`. */
export function action(folder: string, body: string): { packFolder: string; entryPoint: string } {
  const packFolder = join(folder, `pack${++count}`)
  const entryPoint = join(packFolder, 'actions', 'example.py')
  mkdirSync(join(packFolder, 'actions'), { recursive: true })
  writeFileSync(
    entryPoint,
    'from svc.action import Action\n\n\nclass Example(Action):\n    def run(self, **parameters):\n' +
      body.replace(/^/gm, '        '),
  )
  return { packFolder, entryPoint }
}
