/** A new pack: its manifest and an example action. */
import { join } from 'node:path'
import { userInfo } from 'node:os'
import { cliProcess } from '../cli-process.ts'
import { toYaml } from '../output/yaml.ts'
import type { PlannedFile } from './write-files.ts'

/**
 * The files of a pack, the manifest last: without it, a server takes the folder for no pack.
 *
 * @param folder of the pack, absolute
 */
export function planPack(folder: string, pack: string): PlannedFile[] {
  return [
    { path: join(folder, 'actions', 'hello.sh'), text: helloScript, isExecutable: true },
    { path: join(folder, 'actions', 'hello.yaml'), text: helloMetadata },
    { path: join(folder, 'rules', 'README.md'), text: rulesText(pack) },
    { path: join(folder, 'pack.yaml'), text: manifestText(pack) },
  ]
}

/** @param description of the pack */
export function manifestText(pack: string, description = `Actions and rules of ${pack}.`): string {
  return `---
${toYaml({ ref: pack, name: pack, description })}# Three numbers, such as 1.2.3.
version: 0.1.0
${toYaml({ author: accountName() })}`
}

/** The account of the person, as for git: what the environment says goes first. */
export function accountName(): string {
  const { USER = '', LOGNAME = '' } = cliProcess().env
  if (USER !== '' || LOGNAME !== '') return USER === '' ? LOGNAME : USER
  try {
    return userInfo().username
  } catch {
    // The account is in no list of accounts.
    return 'unknown'
  }
}

const helloScript = `#!/bin/sh
# hello.yaml, beside this file, describes the action. Its parameter "name" is the first argument.
set -eu
echo "Hello, $1!"
`

const helloMetadata = `---
name: hello
description: An example. Prints a greeting.
runner_type: local-shell-script
entry_point: hello.sh
parameters:
  name:
    type: string
    description: Who is greeted.
    default: world
    position: 0
`

const rulesText = (
  pack: string,
): string => `Rules say when actions run. \`svc rule\` lists and tests them; one file per rule, such as hourly.yaml:

    name: hourly
    enabled: true
    trigger: {type: core.svc.IntervalTimer, parameters: {unit: hours, delta: 1}}
    action: {ref: ${pack}.hello}
`
