/** A minimal client of the inspector protocol, to profile an isolate. */
import WebSocket from 'ws'

/** A CPU profile of V8. Times are in µs. */
export interface CpuProfile {
  nodes: {
    id: number
    callFrame: { functionName: string; url: string; lineNumber: number; columnNumber: number }
    children?: number[]
  }[]
  samples: number[]
  timeDeltas: number[]
}

export interface Inspector {
  start(): Promise<void>
  /** Ends the profile and closes the connection. */
  stop(): Promise<CpuProfile>
}

const INTERVAL_US = 200

export async function connectInspector(port: number): Promise<Inspector> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as {
    webSocketDebuggerUrl: string
  }[]
  const socket = new WebSocket(targets[0]!.webSocketDebuggerUrl)
  const waiting = new Map<number, PromiseWithResolvers<object>>()
  socket.on('message', (data) => {
    const { id, result = {}, error } = JSON.parse(String(data))
    if (error) waiting.get(id)?.reject(new Error(error.message))
    else waiting.get(id)?.resolve(result)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('error', reject)
  })
  let sent = 0
  const send = (method: string, params = {}) => {
    const answer = Promise.withResolvers<object>()
    waiting.set(++sent, answer)
    socket.send(JSON.stringify({ id: sent, method, params }))
    return answer.promise
  }
  return {
    async start() {
      await send('Profiler.enable')
      await send('Profiler.setSamplingInterval', { interval: INTERVAL_US })
      await send('Profiler.start')
    },
    async stop() {
      const { profile } = (await send('Profiler.stop')) as { profile: CpuProfile }
      socket.close()
      return profile
    },
  }
}
