/** The release, as `package.json` says it. */
import manifest from '../../package.json' with { type: 'json' }

export const version = manifest.version
