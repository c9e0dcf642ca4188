import { createInterface } from 'node:readline/promises'

type Input = NodeJS.ReadableStream & { isTTY?: boolean }
type Output = NodeJS.WritableStream & { isTTY?: boolean }

/**
 * Asks before files are overwritten.
 * @throws Error if the answer is not yes, or if there is no terminal to ask
 */
export async function confirm(
  existing: string[],
  input: Input = process.stdin,
  output: Output = process.stdout,
): Promise<void> {
  const list = existing.join(', ')
  if (!input.isTTY || !output.isTTY) {
    throw new Error(
      `Nothing was written, because these files exist: ${list}. To overwrite them: npx sluice init --force`,
    )
  }
  const terminal = createInterface({ input, output })
  // Ctrl-C and Ctrl-D close the terminal without an answer.
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  const question = `These files exist: ${list}. Overwrite them? (y/N) `
  const answer = await Promise.race([terminal.question(question), closed])
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('Nothing was written.')
}
