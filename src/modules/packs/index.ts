/** Packs: folders of content in the layout of contract 02, 2.8, and the `core` pack that comes with the program. */
import { fileURLToPath } from 'node:url'
import type { Log } from '../../log.ts'
import { describeProblem } from '../../metadata.ts'
import type { Module } from '../../module.ts'
import type { RunnerTypeDefinition } from '../../runners/runner.ts'
import type { Actions } from '../actions/index.ts'
import type { PackConfigs } from '../executions/types.ts'
import type { Rules } from '../rules/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { registerPack, type PackRegistration } from './register.ts'

export interface Packs extends Module, PackConfigs {
  /** Reads a pack folder and registers what is in it; what is wrong comes back and is logged. */
  register(folder: string): Promise<PackRegistration>
}

export interface PacksDeps {
  triggers: Triggers
  actions: Actions
  rules: Rules
  log: Log
  /** Of every runner the program has. */
  runnerTypes: readonly RunnerTypeDefinition[]
}

export function createPacks({ triggers, actions, rules, log, runnerTypes }: PacksDeps): Packs {
  async function register(folder: string, areOurs = false): Promise<PackRegistration> {
    const registration = await registerPack({ triggers, actions, rules }, folder, areOurs)
    for (const problem of registration.problems) {
      log.warning('pack.problem', describeProblem(problem), { pack: registration.ref ?? folder, ...problem })
    }
    return registration
  }

  return {
    name: 'packs',
    register: (folder) => register(folder),
    resolve: () => ({ values: {}, secrets: [] }),
    async start() {
      await actions.registerRunnerTypes(runnerTypes)
      const { problems } = await register(coreFolder, true)
      const [problem] = problems
      if (problem !== undefined) throw new Error(`The core pack is damaged: ${describeProblem(problem)}`)
    },
  }
}

/** Beside this file in the sources, in `packs/core` beside the bundle after the build. */
const coreFolder = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './core/' : './packs/core/', import.meta.url),
)

export type { PackProblem } from './read.ts'
export type { PackRegistration } from './register.ts'
