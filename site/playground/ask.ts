/** Asks the worker. */
import type { Answers, Question } from './engine/answer.ts'

type AnswerTo<Q extends Question> = Answers[Q['kind']]

const worker = new Worker(new URL('./worker.js', document.baseURI), { type: 'module' })
const waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>()
let lastId = 0

worker.addEventListener('message', ({ data: { id, answer, problem } }) => {
  const { resolve, reject } = waiting.get(id)!
  waiting.delete(id)
  if (problem === undefined) resolve(answer)
  else reject(new Error(problem))
})
worker.addEventListener('error', ({ message }) => {
  for (const { reject } of waiting.values()) reject(new Error(message || 'The worker has ended.'))
  waiting.clear()
})

export function ask<Q extends Question>(question: Q): Promise<AnswerTo<Q>> {
  lastId += 1
  const id = lastId
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve: resolve as (answer: unknown) => void, reject })
    worker.postMessage({ id, question })
  })
}
