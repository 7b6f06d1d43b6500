"""What every TypeScript client carries with it: calls and streams over vscode-jsonrpc. Text only, never assembled.

A stream's events are told apart by the id of its request, and service params stand beside its params; vscode-jsonrpc keeps the
one to itself and knows nothing of the other. So the session has a hand in what is written.
"""

from __future__ import annotations

from typing import Final

IMPORTS: Final = """\
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
"""

SESSION: Final = """\
/** What the data of a declared error holds; its code tells which one it is. */
export interface DeclaredError {
  readonly code: string;
  readonly retryable: boolean;
  readonly details?: unknown;
}

/** Thrown for a declared error of an operation; all other errors are vscode-jsonrpc's own. */
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

/** What holds for all calls of one client. */
export interface ClientOptions {
  /** Travels with every request, such as `authorization`; looked at anew for each. */
  readonly serviceParams?: Readonly<Record<string, string>>;
}

/** Thrown by a stream whose consumer fell too far behind; every event before the loss was delivered. */
export class StreamOverrun extends Error {}

/**
 * A connection to a daemon, for any number of clients.
 *
 * `connection` is vscode-jsonrpc's own, for whatever else is to be sent. When it closes, all that is
 * still waited for is rejected.
 */
export class Session {
  readonly connection: MessageConnection;
  private readonly starting = new WeakMap<object, Started>();
  private readonly streams = new Map<unknown, Stream>();

  constructor(reader: MessageReader, writer: MessageWriter, logger?: Logger) {
    const watched = new WatchedWriter(writer, (message) =>
      this.sending(message),
    );
    this.connection = createMessageConnection(reader, watched, logger);
    this.connection.onNotification("stream/event", (event: StreamEvent) =>
      this.streams.get(event.id)?.push(event),
    );
    this.connection.onClose(() => this.connection.dispose());
    this.connection.listen();
  }

  dispose(): void {
    this.connection.dispose();
  }

  /** The result of a call. Cancelling the token asks the daemon to end it; it is rejected with -32800 then. */
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

  /** The events of a subscription. The request leaves with the first `next`; leaving the loop ends it. */
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
      while (await stream.ready()) yield stream.take() as T;
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

  /** What is written for a message. Events name the id of their request, which nothing but the message itself tells. */
  private sending(message: Message): Message {
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

const MOST_WAITING = 10_000;

/** The events that came and were not taken yet. */
class Stream {
  id: unknown = undefined;
  private events: unknown[] = [];
  private came = 0;
  private over: { readonly error?: unknown } | undefined;
  private wake: () => void = () => {};

  push(event: StreamEvent): void {
    if (this.over !== undefined) return;
    this.came += 1;
    if (event.seq !== this.came)
      return this.fail(
        new Error(`event ${this.came} of the stream is missing`),
      );
    if (this.events.length === MOST_WAITING)
      return this.fail(new StreamOverrun("too many events wait to be taken"));
    this.events.push(event.value);
    this.wake();
  }

  complete(events: number): void {
    if (events !== this.came)
      return this.fail(new Error("the end of the stream is missing"));
    this.over ??= {};
    this.wake();
  }

  fail(error: unknown): void {
    this.over ??= { error };
    this.wake();
  }

  async ready(): Promise<boolean> {
    while (this.events.length === 0 && this.over === undefined) {
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
    if (this.events.length > 0) return true;
    if (this.over !== undefined && "error" in this.over) throw this.over.error;
    return false;
  }

  take(): unknown {
    return this.events.shift();
  }
}

class WatchedWriter implements MessageWriter {
  readonly onError: MessageWriter["onError"];
  readonly onClose: MessageWriter["onClose"];
  private readonly inner: MessageWriter;
  private readonly watch: (message: Message) => Message;

  constructor(inner: MessageWriter, watch: (message: Message) => Message) {
    this.onError = inner.onError;
    this.onClose = inner.onClose;
    this.inner = inner;
    this.watch = watch;
  }

  write(message: Message): Promise<void> {
    return this.inner.write(this.watch(message));
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

/** Whether an error is one of those that some operation declares. */
export function isDeclared<E extends DeclaredError>(
  error: unknown,
  codes: readonly E["code"][],
): error is OperationFailed<E> {
  return (
    error instanceof OperationFailed &&
    codes.some((code) => code === error.failure.code)
  );
}
"""
