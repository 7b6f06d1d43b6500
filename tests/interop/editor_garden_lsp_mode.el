;; Emacs with a language server by way of lsp-mode: as editor_garden.el. Its columns are characters, so that ♣ is one where 🌹 were none.  -*- lexical-binding: t -*-
(dolist (each '(lsp-mode lsp-completion lsp-diagnostics lsp-modeline lsp-semantic-tokens)) (require each))
(require 'lisp-mnt)
(setq create-lockfiles nil lsp-auto-guess-root nil lsp-semantic-tokens-enable t lsp-keep-workspace-alive t
      lsp-enable-snippet nil lsp-warn-no-matched-clients nil lsp-restart 'ignore lsp-response-timeout 60
      lsp-diagnostics-provider :flymake lsp-modeline-diagnostics-enable nil lsp-modeline-code-actions-enable nil
      lsp-headerline-breadcrumb-enable nil lsp-enable-file-watchers t lsp-client-packages nil)
(define-derived-mode garden-mode text-mode "Garden")
(add-to-list 'lsp-language-id-configuration '(garden-mode . "garden"))
(lsp-register-client
 (make-lsp-client :new-connection (lsp-stdio-connection '("discreet" "serve" "./garden_server.py:garden"))
                  :major-modes '(garden-mode) :server-id 'garden))

(defvar garden-message nil "What the server said last.")
(advice-add 'lsp--window-show-message :before
            (lambda (_workspace params) (setq garden-message (lsp-get params :message))))
(defvar garden-steps nil "The kinds of progress, the last one first.")
(add-function :before lsp-progress-function
              (lambda (_workspace params) (push (lsp-get (lsp-get params :value) :kind) garden-steps)))

(defun say (name value) (princ (format "%s=%s\n" name value)))
(defun wait (done)
  "Read what comes, events of watched files as well, until DONE."
  (with-timeout (60) (while (not (funcall done)) (read-event nil nil 0.02))))
(defun lines () (string-replace "\n" "|" (buffer-substring-no-properties (point-min) (point-max))))
(defun go-to (word)
  "Go to WORD in the second line."
  (goto-char (point-min))
  (forward-line)
  (search-forward word)
  (goto-char (match-beginning 0)))
(defun diagnostics () (gethash (buffer-file-name) (lsp-diagnostics t)))

(with-temp-file "notes.txt" (insert "# water rose\nwater ♣ rose"))
(lsp-workspace-folders-add default-directory)
(find-file "notes.txt")
(garden-mode)
(lsp)
(wait (lambda () (= (length (diagnostics)) 2)))

(when (getenv "GARDEN_REST")
  (lsp-request-async "workspace/executeCommand" '(:command "garden.rest" :arguments []) #'ignore)
  (while t (accept-process-output nil 60)))

(say "version" (lm-version (concat (file-name-sans-extension (locate-library "lsp-mode")) ".el")))
(say "diagnostics" (mapconcat (lambda (each)
                                (format "%d %s" (lsp-get (lsp-get (lsp-get each :range) :start) :line) (lsp-get each :message)))
                              (diagnostics) ", "))
(go-to "rose")
(say "hover" (lsp-get (lsp-request "textDocument/hover" (lsp--text-document-position-params)) :contents))
(goto-char (point-min))
(pcase-let ((`(,_beg ,_end ,table . ,_) (lsp-completion-at-point)))
  (say "completion" (mapconcat #'substring-no-properties (all-completions "" table) " ")))
(wait (lambda () (font-lock-flush) (font-lock-ensure) (plist-get lsp--semantic-tokens-cache :response)))
(say "semantic tokens" (mapconcat #'number-to-string (lsp-get (plist-get lsp--semantic-tokens-cache :response) :data) " "))

(go-to "rose")
(lsp-rename "tulip")
(say "rename" (lines))
(go-to "water")
(lsp-execute-code-action-by-kind "quickfix")
(say "code action" (lines))

(lsp-workspace-command-execute "garden.grow")
(wait (lambda () (equal (car garden-steps) "end")))
(say "progress" (mapconcat #'identity (reverse garden-steps) " "))
(wait (lambda ()
        (write-region "" nil "oak.seed" nil 'quiet) ; again and again: nothing tells when the watching has begun
        garden-message))
(say "file watching" garden-message)
(set-buffer-modified-p nil)
(lsp-workspace-shutdown (car (lsp-workspaces)))
