import { expect, test } from 'vitest'
import type { FaultStack } from './fault-stack.ts'
import { everySecret, secretsIn } from './secrets.ts'

/** The last test of a file: no planted secret appears in the output that the tests of the file have caused. */
export function testNoLeaks(stack: () => Pick<FaultStack, 'output'>): void {
  test('No log line and no response of this file contains a token, an address, a key or the script.', async () => {
    const output = stack().output()
    expect(output.length).toBeGreaterThan(200) // the output was recorded
    expect(secretsIn(output, await everySecret())).toEqual([])
  })
}
