/* Runs in the page: what a listener hears, and a network that can stall. */

const EAR = `
registerProcessor("ear", class extends AudioWorkletProcessor {
  // "seconds": from the first sounding sample to the last, of those that the ear was given. A browser
  // that is late leaves out whole blocks, for which it asks neither the player nor the ear.
  heard = { sounding: 0, first: 0, last: 0, seconds: 0, steepest: 0, loudest: 0, crossings: [] };
  before = 0;
  sinceFirst = 0;
  constructor() {
    super();
    this.port.onmessage = () => this.port.postMessage(this.heard);
  }
  process([[input]]) {
    const { heard } = this;
    for (let i = 0; i < (input?.length ?? 0); i++) {
      const now = currentTime + i / sampleRate;
      const x = input[i];
      if (x !== 0) {
        heard.sounding++;
        heard.first ||= now;
        heard.last = now;
        heard.seconds = this.sinceFirst / sampleRate;
      }
      if (heard.first) this.sinceFirst++;
      if (this.before < 0 && x >= 0) heard.crossings.push(now - x / (x - this.before) / sampleRate);
      heard.steepest = Math.max(heard.steepest, Math.abs(x - this.before));
      heard.loudest = Math.max(heard.loudest, Math.abs(x));
      this.before = x;
    }
    return true;
  }
});`;

/** What has been heard from a player until it is asked. */
globalThis.listenTo = async ({ context, analyser }) => {
  await context.audioWorklet.addModule(
    URL.createObjectURL(new Blob([EAR], { type: "text/javascript" })),
  );
  const ear = new AudioWorkletNode(context, "ear");
  analyser.connect(ear).connect(context.destination); // it is silent, but else nobody asks it
  return () =>
    new Promise((resolve) => {
      ear.port.onmessage = ({ data }) => {
        const { crossings } = data;
        const periods = crossings
          .slice(1)
          .map((at, i) => at - crossings[i])
          .sort((a, b) => a - b);
        resolve({ ...data, hertz: 1 / periods[periods.length >> 1] });
      };
      ear.port.postMessage(null);
    });
};

/**
 * The network between page and server. From `stall` to `resume`, what the server says waits in
 * `held`, and comes only as far as `deliver` lets it.
 */
globalThis.network = {
  held: [],
  stalled: false,
  stall() {
    this.stalled = true;
  },
  deliver(count = this.held.length) {
    for (const { event, listener } of this.held.splice(0, count)) listener(event);
  },
  resume() {
    this.stalled = false;
    this.deliver();
  },
};

globalThis.StallingSocket = class extends WebSocket {
  addEventListener(type, listener) {
    if (type !== "message") return super.addEventListener(type, listener);
    super.addEventListener(type, (event) => {
      if (network.stalled) network.held.push({ event, listener });
      else listener(event);
    });
  }
};
