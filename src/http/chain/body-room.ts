/** Memory for the bodies of requests under way. */
import { createAllowance, type Allowance } from '../allowance.ts'

/** Memory for the bodies of authenticated requests, in multiples of the largest allowed body. */
const MAX_BODIES = 16
/** The same for requests without a credential that may prove themselves, such as signed webhooks. */
const MAX_STRANGE_BODIES = 16
const MAX_STRANGE_BODIES_PER_ADDRESS = 2

/** Memory for bodies, held until their requests are answered. */
export interface BodyRoom {
  known: Allowance
  strange: Allowance
}

export function createBodyRoom(maxBodyBytes: number): BodyRoom {
  const totalBytes = MAX_BODIES * maxBodyBytes
  return {
    known: createAllowance({ what: 'bytes of requests', totalBytes, bytesPerKey: totalBytes }),
    strange: createAllowance({
      what: 'bytes of requests that are not proven yet',
      totalBytes: MAX_STRANGE_BODIES * maxBodyBytes,
      bytesPerKey: MAX_STRANGE_BODIES_PER_ADDRESS * maxBodyBytes,
    }),
  }
}
