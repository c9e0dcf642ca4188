/** The worker of the page. It answers one question after the other, since a simulation has a clock of its own. */
import { answer, type Question } from './engine/answer.ts'

let before: Promise<unknown> = Promise.resolve()

addEventListener('message', ({ data }: MessageEvent<{ id: number; question: Question }>) => {
  const { id, question } = data
  before = before.then(async () => {
    try {
      postMessage({ id, answer: await answer(question) })
    } catch (error) {
      postMessage({ id, problem: error instanceof Error ? error.message : String(error) })
    }
  })
})

// The deployed code logs JSON lines for operators, such as refusals in shadow. The page shows decisions instead.
console.error = () => {}
