/** Runs code of the guide "Limit anything" with the libraries that it is for. Prints in JSON what six calls got at each place. */
import { once } from 'node:events'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { generateText, isStepCount } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { toolsOf } from './ai-tool.ts'
import { createServer } from './mcp-tool.ts'
import { sockets } from './socket-node.ts'
import { router } from './trpc.ts'

const six = Array.from({ length: 6 }, (_, index) => index + 1)

/** What each of six calls gets, one after the other. */
async function inTurn(call) {
  const answers = []
  for (const count of six) answers.push(await call(count))
  return answers
}

async function trpc() {
  const server = createHTTPServer({ router, createContext: () => ({ userId: 'ann' }) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${server.address().port}/search`
  const statuses = await inTurn(async () => (await fetch(url)).status)
  server.closeAllConnections()
  server.close()
  return statuses
}

async function mcp() {
  const [one, other] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'agent', version: '1.0.0' })
  await Promise.all([createServer('agent').connect(one), client.connect(other)])
  const call = () => client.callTool({ name: 'search', arguments: { query: 'limits' } })
  const answers = await inTurn(call)
  await client.close()
  return answers.map(({ isError, content: [{ text }] }) => ({ isError, text }))
}

/** A model that asks for the weather of six cities at once. */
async function ai() {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
  const step = (reason, content) => ({
    ...{ content, usage, warnings: [], finishReason: { unified: reason, raw: reason } },
  })
  const calls = six.map((count) => ({
    ...{ type: 'tool-call', toolCallId: `${count}`, toolName: 'weather' },
    input: JSON.stringify({ city: `City ${count}` }),
  }))
  const model = new MockLanguageModelV4({
    doGenerate: [step('tool-calls', calls), step('stop', [{ type: 'text', text: 'It is warm.' }])],
  })
  const tools = toolsOf('ann')
  const { steps, text } = await generateText({
    ...{ model, tools, prompt: 'Where is it warm?', stopWhen: isStepCount(2) },
  })
  return { text, outputs: steps[0].toolResults.map(({ output }) => output) }
}

async function socket() {
  if (!sockets.address()) await once(sockets, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${sockets.address().port}`)
  await once(client, 'open')
  const answers = await inTurn(async (count) => {
    client.send(`${count}`)
    return (await once(client, 'message'))[0].data
  })
  client.close()
  sockets.close()
  return answers
}

console.log(
  JSON.stringify({ trpc: await trpc(), mcp: await mcp(), ai: await ai(), socket: await socket() }),
)
