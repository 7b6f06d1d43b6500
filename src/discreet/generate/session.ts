import {
  CancellationTokenSource,
  ParameterStructures,
  ResponseError,
  createMessageConnection,
  type CancellationToken,
  type Logger,
  type Message,
  type MessageConnection,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc";

/** The data of a declared error; `code` says which error it is. */
export interface DeclaredError {
  readonly code: string;
  readonly retryable: boolean;
  readonly details?: unknown;
}

/** Thrown for a declared error of an operation; all other errors are those of vscode-jsonrpc. */
export class OperationFailed<
  E extends DeclaredError = DeclaredError,
> extends Error {
  readonly failure: E;

  constructor(message: string, failure: E) {
    super(message);
    this.name = "OperationFailed";
    this.failure = failure;
  }
}

/** Options for all calls of one client. */
export interface ClientOptions {
  /** Sent with every request, such as `authorization`; read anew for each. */
  readonly serviceParams?: Readonly<Record<string, string>>;
}

/** Thrown by a stream whose consumer fell too far behind; every event before the loss was delivered. */
export class StreamOverrun extends Error {}

/**
 * A connection to a daemon, for any number of clients.
 *
 * `connection` is that of vscode-jsonrpc, for any other message. When it closes, every pending call
 * is rejected.
 */
export class Session {
  readonly connection: MessageConnection;
  private readonly starting = new WeakMap<object, Started>();
  private readonly streams = new Map<unknown, Stream>();

  constructor(reader: MessageReader, writer: MessageWriter, logger?: Logger) {
    const rewriting = new RewritingWriter(writer, (message) =>
      this.outgoing(message),
    );
    this.connection = createMessageConnection(reader, rewriting, logger);
    this.connection.onNotification("stream/event", (event: StreamEvent) =>
      this.streams.get(event.id)?.push(event),
    );
    this.connection.onClose(() => this.connection.dispose());
    this.connection.listen();
  }

  dispose(): void {
    this.connection.dispose();
  }

  /** Returns the result of a call. Cancelling the token cancels it on the daemon; it is rejected with -32800 then. */
  async call<T>(
    method: string,
    params: object,
    codes: readonly string[],
    options: ClientOptions,
    token?: CancellationToken,
  ): Promise<T> {
    const own = { ...params };
    this.starting.set(own, { options });
    try {
      return await this.request<T>(method, own, token);
    } catch (error) {
      throw asDeclared(error, codes);
    }
  }

  /** Yields the events of a subscription. The first `next` sends the request; leaving the loop cancels it. */
  async *subscribe<T>(
    method: string,
    params: object,
    codes: readonly string[],
    options: ClientOptions,
    token?: CancellationToken,
  ): AsyncGenerator<T, void, undefined> {
    const stream = new Stream();
    const source = new CancellationTokenSource();
    const linked = token?.onCancellationRequested(() => source.cancel());
    const own = { ...params };
    this.starting.set(own, { options, stream });
    this.request<{ events: number }>(method, own, source.token).then(
      (done) => stream.complete(done.events),
      (error: unknown) => stream.fail(asDeclared(error, codes)),
    );
    try {
      while (await stream.ready()) yield stream.next() as T;
    } finally {
      linked?.dispose();
      source.cancel();
      this.streams.delete(stream.id);
    }
  }

  private async request<T>(
    method: string,
    params: object,
    token?: CancellationToken,
  ): Promise<T> {
    const { byName } = ParameterStructures;
    return token === undefined
      ? this.connection.sendRequest<T>(method, byName, params)
      : this.connection.sendRequest<T>(method, byName, params, token);
  }

  /** Returns the message to write. The id of a request, which its events repeat, is found in the message alone. */
  private outgoing(message: Message): Message {
    const { id, params } = message as { id?: unknown; params?: object };
    const started =
      params === undefined ? undefined : this.starting.get(params);
    if (started === undefined) return message;
    if (started.stream !== undefined && id !== undefined) {
      started.stream.id = id;
      this.streams.set(id, started.stream);
    }
    const { serviceParams } = started.options;
    return serviceParams === undefined
      ? message
      : Object.assign({}, message, { serviceParams });
  }
}

interface Started {
  readonly options: ClientOptions;
  readonly stream?: Stream;
}

interface StreamEvent {
  readonly id: unknown;
  readonly seq: number;
  readonly value: unknown;
}

const MAX_QUEUED_EVENTS = 10_000;

/** The events that were received and not consumed yet. */
class Stream {
  id: unknown = undefined;
  private events: unknown[] = [];
  private received = 0;
  private ended: { readonly error?: unknown } | undefined;
  private wake: () => void = () => {};

  push(event: StreamEvent): void {
    if (this.ended !== undefined) return;
    this.received += 1;
    if (event.seq !== this.received)
      return this.fail(
        new Error(`event ${this.received} of the stream is missing`),
      );
    if (this.events.length === MAX_QUEUED_EVENTS)
      return this.fail(
        new StreamOverrun("too many events wait to be consumed"),
      );
    this.events.push(event.value);
    this.wake();
  }

  complete(events: number): void {
    if (events !== this.received)
      return this.fail(new Error("the end of the stream is missing"));
    this.ended ??= {};
    this.wake();
  }

  fail(error: unknown): void {
    this.ended ??= { error };
    this.wake();
  }

  async ready(): Promise<boolean> {
    while (this.events.length === 0 && this.ended === undefined) {
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
    if (this.events.length > 0) return true;
    if (this.ended !== undefined && "error" in this.ended)
      throw this.ended.error;
    return false;
  }

  next(): unknown {
    return this.events.shift();
  }
}

class RewritingWriter implements MessageWriter {
  readonly onError: MessageWriter["onError"];
  readonly onClose: MessageWriter["onClose"];
  private readonly inner: MessageWriter;
  private readonly rewrite: (message: Message) => Message;

  constructor(inner: MessageWriter, rewrite: (message: Message) => Message) {
    this.onError = inner.onError;
    this.onClose = inner.onClose;
    this.inner = inner;
    this.rewrite = rewrite;
  }

  write(message: Message): Promise<void> {
    return this.inner.write(this.rewrite(message));
  }

  end(): void {
    this.inner.end();
  }

  dispose(): void {
    this.inner.dispose();
  }
}

function asDeclared(error: unknown, codes: readonly string[]): unknown {
  if (!(error instanceof ResponseError)) return error;
  const data = error.data as DeclaredError | null | undefined;
  return codes.some((code) => code === data?.code)
    ? new OperationFailed(error.message, data as DeclaredError)
    : error;
}

/** Whether an error is a declared one, with one of these codes. */
export function isDeclared<E extends DeclaredError>(
  error: unknown,
  codes: readonly E["code"][],
): error is OperationFailed<E> {
  return (
    error instanceof OperationFailed &&
    codes.some((code) => code === error.failure.code)
  );
}
