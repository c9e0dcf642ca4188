import { expect, test } from 'vitest'
import type { FaultStack } from './fault-stack.ts'
import { everySecret, secretsIn } from './secrets.ts'

/** The last test of every file here: of all that was planted nothing came out, in whatever the file's tests have made Sluice say. */
export function testNoLeaks(stack: () => FaultStack): void {
  test('no log line and no answer of all this holds a token, an address, a key or the script', async () => {
    const said = stack().said()
    expect(said.length).toBeGreaterThan(200) // else nothing was listened to
    expect(secretsIn(said, await everySecret())).toEqual([])
  })
}
