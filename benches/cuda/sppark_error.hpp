// Exceptions of sppark as the errors that its crate knows. Included after sppark's own headers, on the host side.
#pragma once

template<typename Body>
static RustError::by_value guarded(Body body)
{
    try {
        body();
        return RustError{cudaSuccess};
    } catch (const cuda_error& error) {
        return RustError{error.code(), error.what()};
    }
}
