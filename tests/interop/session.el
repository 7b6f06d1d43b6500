;;; session.el --- a session of Emacs' JSON-RPC client with the daemon, in batch mode  -*- lexical-binding: t -*-
(require 'jsonrpc)

(defun session-say (name value) (princ (format "%s=%s\n" name value)))

(defun session-code (thunk)
  "The error code that THUNK ends in."
  (condition-case fault (progn (funcall thunk) "no error")
    (jsonrpc-error (alist-get 'jsonrpc-error-code (cddr fault)))))

(let ((connection
       (make-instance
        'jsonrpc-process-connection
        :name "discreet"
        :process (make-process :name "discreet" :command (split-string-and-unquote (getenv "SESSION_COMMAND"))
                               :connection-type 'pipe :coding 'utf-8-emacs-unix :noquery t
                               :stderr (get-buffer-create "*session-stderr*")))))
  (session-say "initialize"
               (plist-get (plist-get (jsonrpc-request connection :initialize (list :processId (emacs-pid)))
                                     :serverInfo)
                          :name))
  (session-say "add" (jsonrpc-request connection :session/add '(:a 2 :b 40)))
  (session-say "unknown" (session-code (lambda () (jsonrpc-request connection :no/such nil))))
  (session-say "params" (session-code (lambda () (jsonrpc-request connection :session/add '(:a "é→🙂" :b 1)))))
  (session-say "refuse" (session-code (lambda () (jsonrpc-request connection :session/refuse '(:why "x")))))
  (let (cancelled)
    (jsonrpc-async-request connection :session/wait nil
                           :error-fn (lambda (fault) (setq cancelled (plist-get fault :code)))
                           :success-fn #'ignore)
    (let ((id (caar (let (ids) (maphash (lambda (k _) (push (list k) ids))
                                        (jsonrpc--request-continuations connection))
                         ids))))
      (jsonrpc-notify connection :$/cancelRequest (list :id id)))
    (with-timeout (10) (while (not cancelled) (accept-process-output nil 0.05)))
    (session-say "cancel" cancelled))
  (session-say "shutdown" (plist-get (jsonrpc-request connection :shutdown nil) :message))
  (jsonrpc-notify connection :exit nil)
  (let ((process (jsonrpc--process connection)))
    (with-timeout (10) (while (process-live-p process) (accept-process-output nil 0.05)))
    (session-say "status" (process-exit-status process))))
