;;; session.el --- a session of Emacs' JSON-RPC client with the daemon, in batch mode  -*- lexical-binding: t -*-
(require 'jsonrpc)

(defvar session-progress nil "The steps that were told, the last one first.")

(defun session-told (connection method params)
  "Take the notification METHOD of CONNECTION with its PARAMS."
  (ignore connection)
  (when (eq method '$/progress)
    (push (plist-get params :value) session-progress)))

(defun session-say (name value)
  "Print VALUE under NAME for the test."
  (princ (format "%s=%s\n" name value)))

(defvar session
  (make-instance 'jsonrpc-process-connection
                 :name "session"
                 :notification-dispatcher #'session-told
                 :process (lambda ()
                            (make-process :name "session" :connection-type 'pipe
                                          :coding 'utf-8-emacs-unix :noquery t
                                          :command '("discreet" "serve" "./session_app.py:app")
                                          :stderr (get-buffer-create "*session log*")))))

(defvar session-orphans nil "The codes of errors that belong to no request.")

;; A reply whose id is null answers what could not be read. jsonrpc.el looks for its request and calls nil.
(define-advice jsonrpc-connection-receive (:before-while (_connection message) orphans)
  (or (plist-get message :method) (plist-get message :id)
      (ignore (push (plist-get (plist-get message :error) :code) session-orphans))))

(defun session-failure (method params)
  "What the call of METHOD with PARAMS fails with."
  (condition-case failure (list :result (jsonrpc-request session method params))
    (jsonrpc-error (list :code (alist-get 'jsonrpc-error-code (cddr failure))
                         :data (alist-get 'jsonrpc-error-data (cddr failure))))))

(defun session-until (done)
  "Take what comes until DONE says so, 10 seconds at most."
  (with-timeout (10) (while (not (funcall done)) (accept-process-output nil 0.05))))

(session-say "initialize"
             (plist-get (plist-get (jsonrpc-request session :initialize (list :processId (emacs-pid))) :serverInfo) :name))
(session-say "add" (jsonrpc-request session 'session/add '(:a 2 :b 40)))
(session-say "text" (if (equal "é→🙂" (jsonrpc-request session 'session/echo '(:text "é→🙂"))) "same" "other"))
(let ((large (concat (make-string 1000000 ?x) "→")))
  (session-say "large" (if (equal large (jsonrpc-request session 'session/echo (list :text large))) "same" "other")))

(session-say "unknown" (plist-get (session-failure 'no/such nil) :code))
(let ((failure (session-failure 'session/add '(:a "é→🙂" :b 1))))
  (session-say "params" (format "%s %s" (plist-get failure :code) (plist-get (plist-get failure :data) :param))))

(let ((failure
       (condition-case failure (jsonrpc-request session 'session/refuse '(:why "it rains"))
         (jsonrpc-error (alist-get 'jsonrpc-error-data (cddr failure))))))
  (session-say "refuse" (format "%s %s" (plist-get failure :code) (plist-get (plist-get failure :details) :why))))

(jsonrpc-request session 'session/count '(:to 3 :workDoneToken "steps"))
(session-say "progress" (mapconcat #'number-to-string (reverse session-progress) " "))

(let (id outcome)
  (jsonrpc-async-request session 'session/wait nil
                         :success-fn #'ignore
                         :error-fn (lambda (failure) (setq outcome (plist-get failure :code))))
  ;; Nothing public tells the id that a request was given.
  (setq id (jsonrpc--next-request-id session))
  (jsonrpc-notify session '$/cancelRequest (list :id id))
  (session-until (lambda () outcome))
  (session-say "cancel" outcome))

(process-send-string (jsonrpc--process session) "this is no frame\r\n\r\n")
(session-until (lambda () session-orphans))
(session-say "garbage" (format "%s %s" session-orphans (jsonrpc-request session 'session/add '(:a 2 :b 40))))

(session-say "shutdown" (plist-get (jsonrpc-request session 'shutdown nil) :message))
(ignore-errors (jsonrpc-notify session 'exit nil)) ; it may have ended by now
(session-until (lambda () (not (jsonrpc-running-p session))))
(session-say "status" (process-exit-status (jsonrpc--process session)))
