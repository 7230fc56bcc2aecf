// The log of one run or sweep, followed to its end: replayed from the last event seen, again after every lost connection.
const ENDED = /^(run|sweep)\.(finished|failed|cancelled)$/;

export class LogSocket {
  constructor(path, after, onEvent, onState) {
    Object.assign(this, { path, after, onEvent, onState, wait: 250, closed: false });
    this.wake = () => { if (!document.hidden && !this.closed && this.socket?.readyState !== WebSocket.OPEN) this.retry(0); };
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.socket?.close();
    const address = new URL(`${this.path}?after=${this.after}`, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.socket = new WebSocket(address);
    socket.onopen = () => { this.wait = 250; this.onState("open"); };
    socket.onmessage = (message) => { if (socket === this.socket) this.read(JSON.parse(message.data)); };
    socket.onclose = (event) => {
      if (socket !== this.socket || this.closed) return;
      if (event.code === 4404) { this.onState("refused"); this.close(); return; }
      if (event.code === 1000) { this.onState("over"); this.close(); return; }
      this.onState("lost");
      this.retry(this.wait);
      this.wait = Math.min(this.wait * 2, 8000);
    };
  }

  retry(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), delay * (0.75 + Math.random() / 2));
  }

  read(event) {
    if (!(event.seq > this.after)) return;
    this.after = event.seq;
    this.onEvent(event);
    if (ENDED.test(event.kind)) this.close();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    this.socket?.close();
  }
}

export class RunSocket extends LogSocket {
  constructor(run, after, onEvent, onState) {
    super(`/ws/runs/${run}/`, after, onEvent, onState);
  }
}
