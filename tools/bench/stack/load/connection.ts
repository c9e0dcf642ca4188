import { connect, type Socket } from 'node:net'

/** Receives the status, or 0 if the connection ended without a response, and the whole response as text. */
export type Take = (status: number, text: string) => void

export interface RequestOptions {
  /** Path and query. Defaults to `/`. */
  target?: string
  /** Header lines, each with its CRLF. */
  headers?: string
}

/** A minimal HTTP/1.1 keep-alive connection. It uses little CPU, which the results do not include. */
export class Connection {
  readonly #port: number
  #socket: Socket | undefined
  #text = ''
  #take: Take | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Sends a request as the client with this address. One request at a time. */
  ask(address: string, take: Take, { target = '/', headers = '' }: RequestOptions = {}): void {
    this.#take = take
    this.#open().write(
      `GET ${target} HTTP/1.1\r\nHost: bench\r\nCF-Connecting-IP: ${address}\r\nAccept: */*\r\n${headers}\r\n`,
    )
  }

  /** Closes the connection. A request in flight gets no response. */
  hangUp(): void {
    this.#take = undefined
    this.#text = ''
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #open(): Socket {
    if (this.#socket) return this.#socket
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#socket === socket && this.#read(text))
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#end(0)
    })
    this.#socket = socket
    return socket
  }

  #read(text: string): void {
    this.#text += text
    const head = this.#text.indexOf('\r\n\r\n') + 4
    if (head < 4) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#text.slice(0, head))?.[1]
    const isComplete =
      length === undefined
        ? this.#text.endsWith('\r\n0\r\n\r\n') // chunks
        : this.#text.length >= head + Number(length)
    if (isComplete) this.#end(Number(this.#text.slice(9, 12)))
  }

  #end(status: number): void {
    const [take, text] = [this.#take, this.#text]
    this.#take = undefined
    this.#text = ''
    take?.(status, text)
  }
}
