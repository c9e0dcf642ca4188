/** Responds and does nothing else: the baseline. */
export default {
  fetch: () => new Response('ok'),
}
