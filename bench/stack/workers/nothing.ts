/** Answers, and does nothing else: the floor. */
export default {
  fetch: () => new Response('ok'),
}
