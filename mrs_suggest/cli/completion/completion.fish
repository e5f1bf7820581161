function __mrs_at
    set -l path ''
    for word in (commandline -opc)[2..-1]
        contains -- "$path $word" @paths@; and set path "$path $word"
    end
    test "$path" = "$argv[1]"
end
@lines@
