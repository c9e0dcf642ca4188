import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The loopback port of a server. It can be closed, so that connections are refused, and opened again. */
export class Port {
  readonly #server: Server
  #number: number

  constructor(server: Server, number: number) {
    this.#server = server
    this.#number = number
  }

  get url(): string {
    return `http://127.0.0.1:${this.#number}`
  }

  /** Rejects when the port is in use. Retries for 5 s if this object held the port before. */
  async open(): Promise<void> {
    for (let attempt = 1; !this.#server.listening; attempt++) {
      try {
        await this.#listen()
      } catch (error) {
        const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
        if (!taken) throw error
        const message = `Port ${this.#number} is in use: choose another port`
        if (this.#fresh || attempt === 50) throw new Error(message, { cause: error })
        await sleep(100) // an outgoing connection may use the port for a short time
      }
    }
    this.#fresh = false
    this.#number = (this.#server.address() as AddressInfo).port
  }

  /** Breaks all connections and refuses new ones. */
  async shut(): Promise<void> {
    if (!this.#server.listening) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #fresh = true

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#number, '127.0.0.1', () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }
}
