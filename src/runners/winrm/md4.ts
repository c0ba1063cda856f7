/** MD4 (RFC 1320), which NTLM needs for the hash of a password. OpenSSL 3 has it in its legacy provider only. */

const ROUNDS = [
  { constant: 0, shifts: [3, 7, 11, 19], order: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] },
  { constant: 0x5a827999, shifts: [3, 5, 9, 13], order: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15] },
  { constant: 0x6ed9eba1, shifts: [3, 9, 11, 15], order: [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15] },
] as const
const MIXES = [
  (x: number, y: number, z: number): number => (x & y) | (~x & z),
  (x: number, y: number, z: number): number => (x & y) | (x & z) | (y & z),
  (x: number, y: number, z: number): number => x ^ y ^ z,
] as const

export function md4(input: Buffer): Buffer {
  const padded = Buffer.alloc(Math.ceil((input.length + 9) / 64) * 64)
  input.copy(padded)
  padded[input.length] = 0x80
  padded.writeBigUInt64LE(BigInt(input.length) * 8n, padded.length - 8)
  let state: [number, number, number, number] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d] = state
    ROUNDS.forEach(({ constant, shifts, order }, round) => {
      const mix = MIXES[round] ?? MIXES[0]
      order.forEach((word, step) => {
        const sum = (a + mix(b, c, d) + padded.readUInt32LE(block + 4 * word) + constant) | 0
        const shift = shifts[step % 4] ?? 0
        ;[a, b, c, d] = [d, (sum << shift) | (sum >>> (32 - shift)), b, c]
      })
    })
    state = [(state[0] + a) | 0, (state[1] + b) | 0, (state[2] + c) | 0, (state[3] + d) | 0]
  }
  const digest = Buffer.alloc(16)
  state.forEach((word, index) => digest.writeInt32LE(word, 4 * index))
  return digest
}
