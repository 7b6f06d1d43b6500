;; Emacs with a language server by way of eglot: every feature in turn, or a request that is at work until the end.  -*- lexical-binding: t -*-
(require 'eglot)
(require 'lisp-mnt)
(setq eglot-autoshutdown nil eglot-sync-connect 60 create-lockfiles nil)
(define-derived-mode garden-mode text-mode "Garden")
(add-to-list 'eglot-server-programs '(garden-mode . ("discreet" "serve" "./garden_server.py:garden")))

(defvar garden-message nil "What the server said last.")
(cl-defmethod eglot-handle-notification :before
  (_server (_method (eql window/showMessage)) &key message &allow-other-keys)
  (setq garden-message message))

(defun say (name value) (princ (format "%s=%s\n" name value)))
(defun wait (done)
  "Read what comes, events of watched files as well, until DONE."
  (with-timeout (60) (while (not (funcall done)) (read-event nil nil 0.02))))
(defun lines () (string-replace "\n" "|" (buffer-string)))
(defun go-to (word)
  "Go to WORD in the second line."
  (goto-char (point-min))
  (forward-line)
  (search-forward word)
  (goto-char (match-beginning 0)))

(with-temp-file "notes.txt" (insert "# water rose\nwater 🌹 rose"))
(find-file "notes.txt")
(garden-mode)
(apply #'eglot (eglot--guess-contact))
(wait (lambda () (= (length (flymake-diagnostics)) 2)))

(let ((server (eglot-current-server)))
  (when (getenv "GARDEN_REST")
    (jsonrpc-async-request server :workspace/executeCommand '(:command "garden.rest" :arguments []))
    (while t (accept-process-output nil 60)))

  (say "version" (lm-version (concat (file-name-sans-extension (locate-library "eglot")) ".el")))
  (say "diagnostics" (mapconcat (lambda (each)
                                  (format "%d %s" (1- (line-number-at-pos (flymake-diagnostic-beg each)))
                                          (string-trim-left (flymake-diagnostic-text each) "[: ]+")))
                                (flymake-diagnostics) ", "))

  (go-to "rose")
  (let (told)
    (eglot-hover-eldoc-function (lambda (text &rest _) (when text (setq told text))))
    (wait (lambda () told))
    (say "hover" (substring-no-properties told)))
  (pcase-let ((`(,_beg ,_end ,table . ,_) (progn (goto-char (point-min)) (eglot-completion-at-point))))
    (say "completion" (mapconcat #'substring-no-properties (all-completions "" table) " ")))

  (go-to "rose")
  (eglot-rename "tulip")
  (say "rename" (lines))
  (eglot--signal-textDocument/didChange) ; else when Emacs is idle, which it never is in a batch
  (go-to "water")
  (eglot-code-actions (point) (match-end 0) "quickfix" t)
  (say "code action" (lines))

  (wait (lambda ()
          (write-region "" nil "oak.seed" nil 'quiet) ; again and again: nothing tells when the watching has begun
          garden-message))
  (say "file watching" garden-message)
  (set-buffer-modified-p nil)
  (eglot-shutdown server)) ; eglot kills its server then, and does not wait for its status
