;; Emacs with the settings of docs/language-servers.md, which init.el has: it opens a file, and the server answers.  -*- lexical-binding: t -*-
(require 'eglot)
(setq eglot-autoshutdown nil eglot-sync-connect 30)
(defun say (name value) (princ (format "%s=%s\n" name value)))

(find-file "notes.txt")
(text-mode)
(apply #'eglot (eglot--guess-contact))
(let ((server (eglot-current-server))
      (at (list :textDocument (list :uri (eglot--path-to-uri (buffer-file-name))) :position '(:line 0 :character 1))))
  (say "name" (plist-get (eglot--server-info server) :name))
  (say "hover" (plist-get (jsonrpc-request server :textDocument/hover at) :contents))
  (say "completion" (plist-get (aref (jsonrpc-request server :textDocument/completion at) 0) :label))
  (eglot-shutdown server))
