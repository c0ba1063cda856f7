/** Runs the entry point of an action as of another git revision of its pack (contract 03, 3.6). */
import { join, relative } from 'node:path'
import type { ParameterSchema } from '../lib/schema/index.ts'
import { createWork, type PackManagerDeps, type PackWork } from './pack-manager.ts'
import { programStartFailure } from './process/run-command.ts'
import type { RunContext, Runner } from './runner.ts'

export const contentVersionParameter = {
  content_version: {
    type: 'string',
    description: 'Git revision of the pack whose script runs: a branch, tag or commit. Default: the installed files.',
  },
} satisfies Record<string, ParameterSchema>

export type WantedVersion = Pick<RunContext, 'pack' | 'packFolder'> & { revision: string }

/** Files of a revision; they stay until they are released. */
export interface HeldVersion {
  /** Absolute path of the folder that has the layout of the pack. */
  folder: string
  release(): void
}

/** Port: revisions of packs; provided by the packs module. */
export interface PackVersions {
  hold(
    wanted: WantedVersion,
    work: Pick<PackWork, 'run' | 'signal' | 'executionId'>,
  ): Promise<HeldVersion | { problem: string }>
}

/** Bytes of what git lists; the limits of a pack are below. */
const MAX_OUTPUT_BYTES = 33_554_432

/** The runner, which gets the files of the revision instead of those of the pack. */
export function withContentVersion(
  deps: Omit<PackManagerDeps, 'packManager'>,
  packVersions: PackVersions | undefined,
  runner: Runner,
): Runner {
  return {
    ...runner,
    async run(context) {
      const revision = context.runnerParameters['content_version'] ?? ''
      if (revision === '') return await runner.run(context)
      if (typeof revision !== 'string') return programStartFailure('The parameter "content_version" must be text.')
      const held = await hold(context, revision)
      if (context.signal.aborted) {
        if (held !== undefined && 'release' in held) held.release()
        return { status: 'abandoned', result: {} }
      }
      if (held === undefined || 'problem' in held) {
        return programStartFailure(held?.problem ?? 'The parameter "content_version" cannot be used without packs.')
      }
      const { packFolder, entryPoint } = context
      try {
        return await runner.run({
          ...context,
          packFolder: held.folder,
          entryPoint: entryPoint === '' ? '' : join(held.folder, relative(packFolder, entryPoint)),
          environmentFolder: packFolder,
        })
      } finally {
        held.release()
      }
    },
  }

  async function hold(context: RunContext, revision: string): Promise<HeldVersion | { problem: string } | undefined> {
    const { pack, packFolder } = context
    // Neither is the process of the action, nor its start.
    const { startNote: _, ...rest } = context
    const work = createWork({ ...deps, maxResultBytes: MAX_OUTPUT_BYTES }, { ...rest, processStarted: () => undefined })
    try {
      return await packVersions?.hold({ pack, packFolder, revision }, work)
    } catch (error) {
      if (context.signal.aborted) return undefined
      throw error
    }
  }
}
